"""The graphs as the LangGraph server loads them; `langgraph.json` names this module.

It is named as a module, not as a file, so that `langgraph dev --config CLONE/langgraph.json` works from any folder:
started in the folder of your papers, the server finds the same home and reads the same `.env` and `citeloom.toml`
as the command line does there. `langgraph.json` names no env file: the server would let its values override the
environment, while in the command line the environment wins.

The graphs have no checkpointer: the server brings its own and rejects a graph that has one.
"""

from .conversation_graph import conversation_graph
from .graphs import paper_graph, research_graph, section_graph

__all__ = ["conversation", "paper", "research", "section"]

conversation = conversation_graph()
research = research_graph()
section = section_graph()
paper = paper_graph()
