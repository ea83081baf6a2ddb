"""The roles that read, plan, write and judge: protocols, inputs, and implementations with and without chat models."""
