"""The branches of a conversation, and conversations that fork from one."""
