"""The roles that read, plan, write and judge: protocols, inputs, implementations on chat models and without."""
