import os

from openai import OpenAI

client = OpenAI(
    base_url="http://127.0.0.1:8710/v1",
    api_key=os.environ["THREADKEEP_KEY"],
)
response = client.responses.create(model="Assistant", input="Hello! What can you do?")
print(response.output_text)
