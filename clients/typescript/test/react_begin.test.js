// A chat that the first message of a component makes.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {fake, main, mount, until} from './rendering.js';
import {useChat} from 'buildscale/react';
import {createElement, StrictMode, useEffect, useState} from 'react';
import {renderToString} from 'react-dom/server';
import {CHAT, chatOf} from './streaming.js';

/** A component that begins without a chat, and names the one that its first message made, unless it `forgets` it. */
function beginning(hub, {forgets = false, ...more} = {}) {
  const seen = {told: [], states: new Set()};
  const Shown = () => {
    const [chat, setChat] = useState();
    seen.name = setChat;
    const onChat = made => {
      seen.told.push(made);
      if (!forgets) setChat(made);
    };
    seen.view = useChat({client: hub.client, workspace: 'w', chat, onChat, newChat: {role: 'builder'}, ...more});
    seen.states.add(seen.view.status);
    useEffect(() => {
      if (seen.sends) seen.sent = seen.view.send(seen.sends);
    }, []);
    return seen.view.messages.map(({id, text}) => createElement('p', {key: id}, text));
  };
  return {seen, element: createElement(StrictMode, undefined, createElement(Shown))};
}

for (const forgets of [false, true]) test(`the first message makes one chat, which ${forgets ? 'is shown although nobody names it' : 'the component names'}`, async () => {
  const hub = fake({status: 'queued'});
  const {seen, element} = beginning(hub, {forgets});
  assert.match(renderToString(element), /^$/);
  assert.deepEqual([...seen.states], ['idle']);
  seen.view = undefined;
  mount(element);
  await until(() => seen.view?.status === 'idle');
  await seen.view.stop();
  assert.deepEqual([hub.asked, hub.looks, hub.streams.length, seen.view.chat], [[], 0, 0, undefined]);
  const clicks = [seen.view.send('hello', {files: ['f'], on_busy: 'reject'}), seen.view.send('hello', {files: ['f'], on_busy: 'reject'}), seen.view.send('and then')];
  await Promise.all(clicks);
  assert.deepEqual(hub.asked, [['chats', {role: 'builder', files: ['f'], goal: 'hello'}], [`chats/${CHAT}`, {content: 'and then'}]]);
  await until(() => hub.streams.length === 1);
  assert.deepEqual([seen.told, hub.looks, seen.view.chat, [...seen.states]], [[CHAT], 1, CHAT, ['idle', 'running']]);
  hub.tell('message', {message_id: 'u', role: 'user', content: 'hello'});
  hub.tell('turn_started', {turn_id: 't', attempt: 1});
  hub.tell('done', {turn_id: 't', stop_reason: 'end_turn', message: ''});
  await until(() => seen.view.status === 'idle');
  assert.deepEqual([main.textContent, hub.streams.length, hub.looks], ['hello', 1, 1]);
  // Without a name it is an empty one again.
  if (forgets) return;
  seen.name(undefined);
  await until(() => seen.view.chat === undefined);
  assert.deepEqual([main.textContent, seen.view.status], ['', 'idle']);
});

test('a message that an effect sends makes one chat in StrictMode', async () => {
  const hub = fake();
  const {seen, element} = beginning(hub);
  seen.sends = 'hello';
  mount(element);
  await until(() => hub.streams.length === 1);
  await seen.sent;
  assert.deepEqual([hub.asked, seen.told], [[['chats', {role: 'builder', goal: 'hello'}]], [CHAT]]);
});

test('a first message whose answer was lost is sent again under its key, and another one under its own', async () => {
  const hub = fake();
  const {seen, element} = beginning(hub);
  mount(element);
  await until(() => seen.view?.status === 'idle');
  hub.lost = true;
  await assert.rejects(seen.view.send('hello'), {name: 'Unreachable'});
  await until(() => seen.view.status === 'idle');
  await assert.rejects(seen.view.send('hello'), {name: 'Unreachable'});
  await assert.rejects(seen.view.send('bye'), {name: 'Unreachable'});
  hub.lost = false;
  await seen.view.send('bye');
  const [first, again, other, last] = hub.keys;
  assert.deepEqual([first === again, other === again, other === last, seen.told], [true, false, true, [CHAT]]);
});

test('a component that shows another chat by then is not told of the one that it began', async () => {
  const hub = fake();
  const {seen, element} = beginning(hub);
  mount(element);
  await until(() => seen.view?.status === 'idle');
  let answer;
  hub.lost = new Promise(resolve => { answer = resolve; });
  const sent = seen.view.send('hello');
  seen.name(chatOf(2));
  await until(() => hub.streams.length === 1);
  answer(false);
  await sent;
  await new Promise(setImmediate);
  assert.deepEqual([seen.told, hub.streams.length, hub.streams[0].actors], [[], 1, `chat:${chatOf(2)}:0`]);
});
