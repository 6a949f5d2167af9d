// The reference of the API: how it reads an OpenAPI document, and the page in a browser against the document of a real hub.
import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import {after, before, test} from 'node:test';
import ts from 'typescript';
import {begin, violations} from './browser.mjs';

const source = await readFile(new URL('../src/reference/document.ts', import.meta.url), 'utf8');
const {outputText} = ts.transpileModule(source, {compilerOptions: {target: 'ES2022', module: 'ESNext', verbatimModuleSyntax: true}});
const {curl, exampleOf, fieldsOf, groups, namedIn, refusalsOf, typeOf} = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);

const TOKEN = 'token-of-the-stories-of-the-reference';
let world;
before(async () => {
  world = await begin({args: ['--auth-token', TOKEN], token: TOKEN});
});
after(() => world.end());

const API = {
  info: {title: 'T', version: '1'},
  tags: [{name: 'b', description: 'The second.'}, {name: 'none'}],
  paths: {
    '/a/{a_id}/events': {
      get: {
        operationId: 'watch_a', tags: ['a'], summary: 'Watches.', parameters: [{name: 'a_id', in: 'path', required: true}, {name: 'after', in: 'query', required: true}, {name: 'limit', in: 'query'}],
        responses: {200: {content: {'text/event-stream': {}}}, 404: {$ref: '#/components/responses/404-NOT_FOUND'}, 409: {$ref: '#/components/responses/409-CONFLICT-IDEMPOTENCY_MISMATCH'}},
      },
    },
    '/c/{path}': {delete: {operationId: 'remove_c', tags: ['none'], parameters: [{name: 'path', in: 'path', required: true}, {name: 'If-Match', in: 'header', required: true}]}},
    '/b': {post: {operationId: 'make_b', tags: ['b'], summary: 'Makes one.', requestBody: {content: {'application/json': {schema: {$ref: '#/components/schemas/NewB'}}}}}},
  },
  components: {schemas: {
    Named: {type: 'object', properties: {name: {type: 'string', example: "it's"}}, required: ['name']},
    NewB: {allOf: [{$ref: '#/components/schemas/Named'}, {type: 'object', properties: {inner: {$ref: '#/components/schemas/NewB'}, kinds: {type: 'array', items: {$ref: '#/components/schemas/Named'}}}, required: ['kinds']}]},
    Loop: {type: 'object', properties: {again: {$ref: '#/components/schemas/Loop'}}, required: ['again']},
  }},
};

test('routes are found by words, in groups of their tags', () => {
  const found = words => groups(API, words).map(({tag, operations}) => [tag, operations.map(({id}) => id)]);
  assert.deepEqual(found(), [['b', ['make_b']], ['none', ['remove_c']], ['a', ['watch_a']]]);
  assert.deepEqual(found('EVENTS get'), [['a', ['watch_a']]]);
  assert.deepEqual(found('nowhere'), []);
});

test('types are told in a line, and fields with those of all parts', () => {
  for (const [schema, told] of [
    [{type: ['null', 'string'], format: 'uuid'}, 'string (uuid) | null'],
    [{type: 'array', items: {$ref: '#/components/schemas/Named'}}, 'Named[]'],
    [{type: 'array', items: {enum: ['a', 'b']}}, '("a" | "b")[]'],
    [{oneOf: [{type: 'null'}, {$ref: '#/components/schemas/Named'}]}, 'Named | null'],
    [{type: 'object', additionalProperties: {type: 'integer'}}, 'map of integer'],
    [undefined, 'any'],
  ]) assert.equal(typeOf(schema), told);
  const fields = fieldsOf(API, {$ref: '#/components/schemas/NewB'});
  assert.deepEqual(fields.map(({name, isRequired}) => [name, isRequired]), [['name', true], ['inner', false], ['kinds', true]]);
  assert.deepEqual(namedIn(fields[2].schema), ['Named']);
  assert.deepEqual(exampleOf(API, {$ref: '#/components/schemas/Loop'}), {again: {again: {again: {again: {}}}}});
});

test('a route is a command of a shell, with what it needs and no more', () => {
  const [make, remove, watch] = groups(API).map(({operations}) => operations[0]);
  assert.equal(curl(API, watch, 'http://h'), 'curl -N "http://h/a/$A_ID/events?after=$AFTER" \\\n  -H "authorization: Bearer $BUILDSCALE_TOKEN"');
  const lines = curl(API, make, 'http://h').split(' \\\n  ');
  assert.deepEqual(lines, ['curl -X POST "http://h/b"', '-H "authorization: Bearer $BUILDSCALE_TOKEN"', "-H 'content-type: application/json'", `-d '{"name":"it'\\''s","kinds":[]}'`]);
  // A shell has a `$PATH` of its own.
  assert.equal(curl(API, remove, 'http://h'), 'curl -X DELETE "http://h/c/$PATH_VALUE" \\\n  -H "authorization: Bearer $BUILDSCALE_TOKEN" \\\n  -H "if-match: $IF_MATCH"');
  assert.deepEqual(refusalsOf(watch), [{status: '404', codes: ['NOT_FOUND']}, {status: '409', codes: ['CONFLICT', 'IDEMPOTENCY_MISMATCH']}]);
});

test('a person finds the reference, finds a route in it, and sees its fields and a line to copy', async () => {
  const page = await world.open('health', {token: TOKEN});
  await page.getByRole('link', {name: 'API reference'}).click();
  await page.getByRole('heading', {name: 'API reference'}).waitFor();
  assert.equal(await page.title(), 'API reference · BuildScale');
  // The page itself scrolls: a key does it also while nothing has the focus.
  await page.reload();
  await page.getByRole('heading', {name: 'workspaces', exact: true}).waitFor();
  await page.keyboard.press('PageDown');
  await page.waitForFunction(() => scrollY > 0);
  // All routes of the hub are there.
  const {paths} = await (await fetch(`${world.hub.url}/openapi.json`)).json();
  const all = Object.values(paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0);
  await page.getByRole('status').getByText(`${all} routes`, {exact: true}).waitFor();
  await page.getByRole('searchbox', {name: 'Find a route'}).fill('post stream-tickets');
  await page.getByRole('status').getByText('1 route', {exact: true}).waitFor();
  await page.locator('summary', {hasText: '/stream-tickets'}).click();
  const route = page.locator('.route');
  await route.getByText(`curl -X POST "${world.hub.url}/api/v1/workspaces/$WORKSPACE_ID/stream-tickets"`).waitFor();
  const body = route.getByRole('region', {name: 'Body'});
  await body.getByText('chat_id', {exact: true}).waitFor();
  await route.getByRole('region', {name: 'Answers'}).getByText('expires_at', {exact: true}).waitFor();
  await route.getByText('401 UNAUTHORIZED').waitFor();
  // A link to one route opens it and gives it the focus, and the keyboard closes it.
  await page.getByRole('link', {name: 'create_ticket'}).click();
  await page.reload();
  const linked = page.locator('#route-create_ticket[open]');
  await linked.locator('summary:focus').first().waitFor();
  await page.keyboard.press('Enter');
  await linked.waitFor({state: 'detached'});
  // A search that drops the route and finds it again keeps the focus.
  const search = page.getByRole('searchbox', {name: 'Find a route'});
  await search.fill('words of no route');
  await page.getByRole('status').getByText('No route has these words.', {exact: true}).waitFor();
  await search.fill('');
  await linked.waitFor();
  assert.ok(await search.evaluate(element => element === document.activeElement));
  // The palette knows the page.
  await page.getByRole('link', {name: 'to the console'}).click();
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('api reference');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', {name: 'API reference'}).waitFor();
  await page.context().close();
});

test('/docs of the hub leads there, without a token', async () => {
  const page = await world.open();
  await page.goto(`${world.hub.url}/docs`);
  await page.getByRole('heading', {name: 'API reference'}).waitFor();
  await page.getByRole('heading', {name: 'workspaces', exact: true}).waitFor();
  await page.context().close();
});

for (const [theme, width] of [['light', 1280], ['dark', 1280], ['light', 390], ['dark', 390]]) {
  test(`the reference is accessible and fits: ${theme}, ${width} pixels wide`, async () => {
    const page = await world.open('', {theme, width, height: 780});
    await page.goto(`${world.hub.url}/#/reference/create_chat`);
    const route = page.locator('.route[open]');
    await route.waitFor();
    // Schemas inside of schemas.
    await route.locator('.api-fields summary').first().click();
    await route.locator('.api-fields details[open] .api-fields, .api-fields details[open] p').first().waitFor();
    assert.deepEqual(await violations(page), []);
    await page.evaluate(() => scrollTo(0, 0));
    assert.deepEqual(await violations(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it is too wide');
    await page.context().close();
  });
}
