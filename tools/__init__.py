"""The agent's tools, and the retrieval that they use."""
