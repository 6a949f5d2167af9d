// Modules of the page that need neither a page nor a hub, for tests without a browser.
import {readFile} from 'node:fs/promises';
import ts from 'typescript';

/** A module of the page as an address to import. The modules that it names become addresses, too, so it may name those alone that need no page. */
export async function address(place) {
  const {outputText} = ts.transpileModule(await readFile(place, 'utf8'), {compilerOptions: {target: 'ES2022', module: 'ESNext', verbatimModuleSyntax: true}});
  let text = outputText;
  for (const [named, , path] of outputText.matchAll(/(?<=\sfrom )(['"])([^'"]*)\1/g)) {
    const inside = JSON.stringify(path.startsWith('.') ? await address(new URL(path, place)) : import.meta.resolve(path));
    text = text.replace(named, () => inside);
  }
  return `data:text/javascript,${encodeURIComponent(text)}`;
}
