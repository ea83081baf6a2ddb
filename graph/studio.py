"""The graphs as the LangGraph server loads them, named by `langgraph.json`.

Compiled without a checkpointer: the server brings its own, and refuses a graph that has one.
"""

from citeloom.graph.section_graph import section_graph

section = section_graph()
