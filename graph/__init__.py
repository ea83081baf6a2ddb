"""How it flows: the section graph, its state, and runs that can be killed and gone on with."""
