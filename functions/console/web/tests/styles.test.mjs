// The style sheets, which are one for the browser: a class that two of them define looks on one page as the other one wants it.
import assert from 'node:assert/strict';
import {readdir, readFile} from 'node:fs/promises';
import {test} from 'node:test';

const FOLDER = new URL('../src/styles/', import.meta.url);

/** The classes that have a rule of their own in a style sheet. */
function classes(sheet) {
  const selectors = [...sheet.replaceAll(/\/\*.*?\*\//gs, '').matchAll(/([^{}]+)\{/g)].flatMap(([, selector]) => selector.split(','));
  return new Set(selectors.map(selector => selector.trim().match(/^\.[\w-]+$/)?.[0]).filter(Boolean));
}

test('no class has a rule of its own in two style sheets', async () => {
  const names = (await readdir(FOLDER)).filter(name => name.endsWith('.css'));
  const sheets = await Promise.all(names.map(async name => classes(await readFile(new URL(name, FOLDER), 'utf8'))));
  const all = sheets.flatMap(sheet => [...sheet]);
  assert.ok(all.length > 100, `${all.length} classes are found`);
  assert.deepEqual(all.filter((name, at) => all.indexOf(name) !== at), []);
});
