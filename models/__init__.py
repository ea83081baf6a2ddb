"""Access to models: chat, embeddings and re-ranker, behind the journal that caches their answers.

Nothing is imported here, since the command line needs some of these modules before it knows which command to run.
"""
