"""Who reads and writes: chat models, embedding and re-ranker, the journal before them, the roles on top.

Nothing is imported here, since the command line needs some of these modules before it knows what it is to do.
"""
