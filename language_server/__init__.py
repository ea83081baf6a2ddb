"""The language server: editors ask it for citations by meaning, the words behind them, and what a check finds."""
