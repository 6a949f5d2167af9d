// A hub that a proxy has below a path.
import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {test} from 'node:test';
import {Client, upload} from 'buildscale';

test('a content goes to its address below the path of the hub', async () => {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url.split('?')[0]}`);
    const transfer = {method: 'PUT', url: '/api/v1/workspaces/w/contents/x?ticket=t', headers: {}};
    request.resume().on('end', () => response.end(JSON.stringify(request.url.endsWith('/uploads') ? {request: transfer} : {file_id: 'f'})));
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  try {
    const hub = new Client({url: `http://127.0.0.1:${server.address().port}/below`});
    await upload(hub, {workspace: 'w', path: '/a'}, 'content');
    const place = '/below/api/v1/workspaces/w';
    assert.deepEqual(asked, [`POST ${place}/uploads`, `PUT ${place}/contents/x`, `PUT ${place}/files/by-path`]);
  } finally {
    server.closeAllConnections();
    await new Promise(done => server.close(done));
  }
});
