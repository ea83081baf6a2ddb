"""The graphs for the LangGraph server, without a checkpointer: the server brings its own and rejects others.

`langgraph.json` names this module, not a file, so that `langgraph dev --config CLONE/langgraph.json` in the folder of
your papers finds the same home, `.env` and `citeloom.toml` as the command line. It names no env file, since the server
would let it override the environment.
"""

from .conversation_graph import conversation_graph
from .graphs import paper_graph, research_graph, section_graph
from .input_check import EventProjections as EventProjections

__all__ = ["conversation", "paper", "research", "section"]

conversation = conversation_graph()
research = research_graph()
section = section_graph()
paper = paper_graph()
