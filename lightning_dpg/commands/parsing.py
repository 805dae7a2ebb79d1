"""x."""
def explain_parsing(message, parser):
    return message
