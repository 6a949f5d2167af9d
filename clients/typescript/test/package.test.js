// The package as npm has it: its types are those of the hub, its README works, and it brings nothing else along.
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {createHash} from 'node:crypto';
import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {promisify} from 'node:util';
import {Parser} from 'buildscale';
import {Sha256} from '../dist/sha256.js';
import {startHub} from './hub.js';

const run = promisify(execFile);
const root = fileURLToPath(new URL('..', import.meta.url));

test('the types are those of the hub', async () => {
  const hub = await startHub();
  const folder = await mkdtemp(`${root}dist/types-`);
  try {
    const made = `${folder}/schema.ts`;
    await run('npx', ['openapi-typescript', `${hub.url}/openapi.json`, '--output', made, '--alphabetize', '--empty-objects-unknown'], {cwd: root});
    const same = (await readFile(made, 'utf8')) === (await readFile(`${root}src/schema.ts`, 'utf8'));
    assert.ok(same, 'src/schema.ts is stale: start a hub, then run BUILDSCALE_URL=… npm run generate in clients/typescript');
  } finally {
    await rm(folder, {recursive: true});
    await hub.stop();
  }
});

const RUNTIMES = {
  Node: [process.execPath],
  Deno: [`${root}test/runtimes/node_modules/.bin/deno`, 'run', '--allow-net', '--allow-env'],
  Bun: [`${root}test/runtimes/node_modules/.bin/bun`, 'run'],
};
for (const [name, [runtime, ...args]] of Object.entries(RUNTIMES)) test(`the program of the README does what it says in ${name}`, async () => {
  const hub = await startHub();
  const program = `${root}dist/readme-${name}.mjs`;
  try {
    const [, code] = /```js\n([\s\S]*?)```/.exec(await readFile(`${root}README.md`, 'utf8'));
    assert.ok(code.trim().split('\n').length <= 20);
    await writeFile(program, code);
    const {stdout} = await run(runtime, [...args, program], {cwd: root, env: {...process.env, BUILDSCALE_URL: hub.url, DENO_NO_UPDATE_CHECK: '1'}});
    assert.match(stdout, /Done\. This is what happened/);
    assert.match(stdout, /# Hello from BuildScale/);
  } finally {
    await rm(program, {force: true});
    await hub.stop();
  }
});

test('the package has its code, its types and its README, and needs no other', async () => {
  const {stdout} = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {cwd: root});
  const files = JSON.parse(stdout)[0].files.map(file => file.path);
  for (const file of ['README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts', 'dist/schema.d.ts', 'dist/react/index.js', 'dist/react/index.d.ts']) assert.ok(files.includes(file), file);
  assert.ok(files.every(file => file.startsWith('dist/') || ['README.md', 'package.json', 'LICENSE'].includes(file)), files.join());
  const {dependencies, peerDependenciesMeta} = JSON.parse(await readFile(`${root}package.json`, 'utf8'));
  assert.deepEqual([dependencies, peerDependenciesMeta], [undefined, {react: {optional: true}}]);
  for (const file of files.filter(file => /^dist\/(?!react\/).*\.js$/.test(file))) assert.doesNotMatch(await readFile(root + file, 'utf8'), /from ['"]react/, file);
});

test('the component of the README has its types, what a program may lack may be undefined, and the hooks are those of a client component', async () => {
  const [, code] = /```tsx\n([\s\S]*?)```/.exec(await readFile(`${root}README.md`, 'utf8'));
  const component = `${root}dist/readme-react.tsx`;
  try {
    const more = `
      import {serveTools, watchChat} from 'buildscale';
      const hub = new Client({url: '', token: undefined as string | undefined});
      export const some = (signal?: AbortSignal, after?: number) => [
        hub.get('/api/v1/workspaces', {signal}), watchChat(hub, {workspace: '', chat: ''}, {after, signal}), serveTools(hub, '', {}, {signal}),
      ];`;
    await writeFile(component, code + more);
    await run('npx', ['tsc', '--noEmit', '--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', '--target', 'ES2022', '--module', 'NodeNext', '--jsx', 'react-jsx', component], {cwd: root});
  } catch (error) {
    assert.fail(error.stdout);
  } finally {
    await rm(component, {force: true});
  }
  assert.doesNotMatch(await readFile(`${root}dist/client.d.ts`, 'utf8'), /patiently/, 'editors complete what is no part of the interface');
  for (const name of ['index', 'chat', 'task']) assert.match(await readFile(`${root}dist/react/${name}.js`, 'utf8'), /^'use client';/);
});

test('a digest is the same however its bytes are cut', () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 128, 1000]) {
    const bytes = new Uint8Array(length).map((_, at) => at * 31);
    const expected = createHash('sha256').update(bytes).digest('hex');
    for (const size of [1, 7, 64, 1001]) {
      const digest = new Sha256();
      for (let at = 0; at < length; at += size) digest.update(bytes.subarray(at, at + size));
      assert.equal(digest.hex(), expected, `${length} bytes in pieces of ${size}`);
    }
  }
});

test('events are parsed however their bytes are cut', () => {
  const text = ': hello\nid: 1\nevent: a\ndata: {"x":\r\ndata: 1}\n\nid: 2\r\ndata:two\r\n\r\nid: 3\nevent: cursor\nretry: 2000\n\nevent: b\ndata: é\n\n';
  const expected = [{id: '1', event: 'a', data: '{"x":\n1}'}, {id: '2', event: 'message', data: 'two'}, {id: '3', event: 'b', data: 'é'}];
  for (let size = 1; size <= text.length; size++) {
    const parser = new Parser();
    const blocks = [];
    for (let at = 0; at < text.length; at += size) blocks.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(blocks, expected, `pieces of ${size}`);
    assert.deepEqual([parser.lastId, parser.retryMs], ['3', 2000]);
  }
});
