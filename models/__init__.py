"""Access to models behind the journal; imports nothing, as some modules are needed before the command is known."""
