// The rows of a chat that is read while, or after, its turn runs: in the order in which they came.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {fake, mount, shown, until} from './rendering.js';
import {useChat} from 'buildscale/react';
import {CHAT} from './streaming.js';

/** A turn that asked for permission, told from its beginning. */
function tellTurn(hub) {
  hub.tell('message', {message_id: 'u', role: 'user', content: 'go', files: []});
  hub.tell('turn_started', {turn_id: 't', attempt: 1});
  hub.tell('message', {message_id: 'a', role: 'assistant', content: 'I look.'});
  hub.tell('permission_required', {permission_id: 'p', call_id: 'c', tool: 'exec', args: {}, category: 'exec', reason: '', expires_at: '2030-01-01T00:00:00Z'});
  hub.tell('permission_resolved', {permission_id: 'p', outcome: 'approved', by: 'me'});
  hub.tell('message', {message_id: 'b', role: 'assistant', content: 'Done.'});
  hub.tell('done', {turn_id: 't', stop_reason: 'end_turn', message: ''});
}

for (const [what, messages, first] of [
  ['whole', [{id: 'o', seq: 0, role: 'user', content: 'before'}, {id: 'u', seq: 1, role: 'user', content: 'go'}, {id: 'a', seq: 3, role: 'assistant', content: 'I look.'}, {id: 'b', seq: 6, role: 'assistant', content: 'Done.'}], ['m:o']],
  ['longer than a page of the history', [{id: 'b', seq: 6, role: 'assistant', content: 'Done.'}], []],
]) {
  test(`a turn that is ${what} has its rows in the order in which they came`, async () => {
    const hub = fake({messages, last_seq: 6, turn_id: 't', turn_seq: 1});
    const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
    mount(element);
    await until(() => hub.streams.length === 1);
    tellTurn(hub);
    await until(() => seen.view.status === 'idle');
    assert.deepEqual(seen.view.rows.map(({id}) => id), [...first, 'm:u', 'm:a', 'p:p', 'm:b', 't:t']);
  });
}
