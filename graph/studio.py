"""The graphs as the LangGraph server loads them, without a checkpointer: it brings its own and rejects another.

`langgraph.json` names this module, not a file, so that `langgraph dev --config CLONE/langgraph.json` in the folder of
your papers finds the same home, `.env` and `citeloom.toml` as the command line. It names no env file: the server
would let its values override the environment, which wins in the command line.
"""

from .conversation_graph import conversation_graph
from .graphs import paper_graph, research_graph, section_graph
from .input_check import EventProjections as EventProjections

__all__ = ["conversation", "paper", "research", "section"]

conversation = conversation_graph()
research = research_graph()
section = section_graph()
paper = paper_graph()
