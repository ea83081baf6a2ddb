"""The roles on chat models: prompts in, validated answers out."""
