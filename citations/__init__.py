"""Citations of a draft: markers, checks, rendering, references and export."""
