"""The roles without a chat model: deterministic, by sentence selection and templates."""
