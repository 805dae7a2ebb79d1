"""The model card: one content, as JSON, as Markdown and as a printable page."""
