"""The client of OpenAI for Python: completions, streams, responses in the background and in conversations, functions, formats, refusals."""

import json
import os

import openai
import pydantic

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

# A stream that broke off goes on after the event that came last.
sent = client.responses.create(model="assistant", input="events again", background=True, stream=True)
first = next(iter(sent))
sent.close()
rest = list(client.responses.retrieve(first.response.id, stream=True, starting_after=first.sequence_number))
numbers = [event.sequence_number for event in rest]
out["resumed"] = [first.type, numbers[0] - first.sequence_number, numbers == sorted(numbers), rest[-1].type]

polled = client.responses.create(model="assistant", input="say it", background=True)
done = polled
# poll: this is how the protocol tells of the end
while done.status in ("queued", "in_progress"):
    done = client.responses.retrieve(polled.id)
out["background"] = [polled.status, done.status, done.output_text]

more = client.responses.create(model="assistant", input="say more", previous_response_id=done.id)
last = client.responses.create(model="assistant", input="say again", conversation=done.conversation.id)
out["conversation"] = [
    more.previous_response_id == done.id,
    last.previous_response_id == more.id,
    {one.conversation.id for one in (done, more, last)} == {done.conversation.id},
    last.output_text,
]

# The program runs its own function, and the chat goes on with the results.
place = {"type": "object", "properties": {"place": {"type": "string"}}}
weather = {"name": "weather", "description": "Tells the weather.", "parameters": place}
told = {"Rome": "warm", "Oslo": "cold"}
tools = [{"type": "function", "strict": False, **weather}]
response = client.responses.create(model="assistant", input="weather", tools=tools)
out["functions"] = []
while calls := [item for item in response.output if item.type == "function_call"]:
    asked = json.loads(calls[0].arguments)["place"]
    out["functions"].append([calls[0].name, asked])
    result = {"type": "function_call_output", "call_id": calls[0].call_id, "output": told[asked]}
    response = client.responses.create(model="assistant", previous_response_id=response.id, input=[result], tools=tools)
out["functions"].append(response.output_text)
messages = [{"role": "user", "content": "weather"}]
tools = [{"type": "function", "function": weather}]
while True:
    choice = client.chat.completions.create(model="assistant", messages=messages, tools=tools).choices[0]
    if choice.finish_reason != "tool_calls":
        break
    messages.append(choice.message)
    for call in choice.message.tool_calls:
        result = told[json.loads(call.function.arguments)["place"]]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
out["completed"] = [len(messages), choice.message.content]


# An answer in a format is an object of the program's own class. One of another form is an error, also in streams.
class Bee(pydantic.BaseModel):
    """An insect."""

    name: str
    legs: int


def completed(scene):
    messages = [{"role": "user", "content": scene}]
    return {"model": "assistant", "messages": messages, "response_format": Bee}


def responded(scene):
    return {"model": "assistant", "input": scene, "text_format": Bee}


out["formats"] = []
for scene in ("describe the bee", "look at the bee"):
    with client.chat.completions.stream(**completed(scene)) as chunks:
        bees = [chunks.get_final_completion().choices[0].message.parsed]
    with client.responses.stream(**responded(scene)) as events:
        bees.append(events.get_final_response().output_parsed)
    bees.append(client.chat.completions.parse(**completed(scene)).choices[0].message.parsed)
    response = client.responses.parse(**responded(scene))
    bees.append(response.output_parsed)
    out["formats"].append([bees == [Bee(name="bee", legs=6)] * 4, response.text.format.name])
guess = "guess the bee"
out["misfits"] = []
try:
    client.chat.completions.parse(**completed(guess))
except openai.UnprocessableEntityError as error:
    out["misfits"].append([error.code, "/legs" in error.message])
try:
    with client.chat.completions.stream(**completed(guess)) as chunks:
        chunks.until_done()
except openai.APIError as error:
    out["misfits"].append([error.code, "/legs" in error.message])
response = client.responses.parse(**responded(guess))
out["misfits"].append([response.status, response.error.code, "/legs" in response.error.message])
with client.responses.stream(**responded(guess)) as events:
    last = list(events)[-1]
out["misfits"].append([last.type, last.response.error.code, "/legs" in last.response.error.message])
try:
    client.responses.create(model="assistant", input="x", store=False)
except openai.BadRequestError as error:
    out["refusal"] = [error.code, error.param]
print(json.dumps(out))
