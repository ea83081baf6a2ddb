"""The language server: offers editors citations by meaning, the words behind them, and the results of checks."""
