"""What a conversation is: values and rules. Imports the standard library only."""
