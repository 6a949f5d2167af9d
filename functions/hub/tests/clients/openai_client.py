"""The client of OpenAI for Python: a completion, a stream, a response with its events, and a refusal."""

import json
import os

import openai

client = openai.OpenAI(
    api_key="any",
    base_url=os.environ["HUB"] + "/openai/v1",
    default_headers={"X-Workspace-Id": os.environ["WORKSPACE"]},
    max_retries=0,
)
out = {"models": [model.id for model in client.models.list()]}
messages = [{"role": "user", "content": "say it"}]
out["completion"] = client.chat.completions.create(model="assistant", messages=messages).choices[0].message.content
messages = [{"role": "user", "content": "chunks of python"}]
pieces = [
    chunk.choices[0].delta.content or ""
    for chunk in client.chat.completions.create(model="assistant", messages=messages, stream=True)
]
out["chunks"] = "".join(pieces)
with client.responses.stream(model="assistant", input="events of python") as stream:
    types = [event.type for event in stream]
    final = stream.get_final_response()
out["stream"] = [final.status, final.output_text, types[0], types[-1]]
out["retrieved"] = client.responses.retrieve(final.id).output_text == final.output_text
try:
    client.responses.create(model="assistant", input="x", max_output_tokens=9)
except openai.BadRequestError as error:
    out["refusal"] = [error.code, error.param]
print(json.dumps(out))
