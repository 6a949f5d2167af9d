/** CodeMirror for files and their differences. It lives in a shadow root: there its styles are sheets, which the policy of the page allows. */
import {defaultKeymap, history, historyKeymap, indentWithTab} from '@codemirror/commands';
import {javascript} from '@codemirror/lang-javascript';
import {json} from '@codemirror/lang-json';
import {markdown} from '@codemirror/lang-markdown';
import {python} from '@codemirror/lang-python';
import {yaml} from '@codemirror/lang-yaml';
import {bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting} from '@codemirror/language';
import {unifiedMergeView} from '@codemirror/merge';
import {highlightSelectionMatches, searchKeymap} from '@codemirror/search';
import {EditorState, type Extension} from '@codemirror/state';
import {drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers} from '@codemirror/view';
import {tags} from '@lezer/highlight';
import {useEffect, useRef} from 'react';



const LANGUAGES: [RegExp, () => Extension][] = [
  [/\.(md|markdown)$/i, markdown],
  [/\.ya?ml$/i, yaml],
  [/\.(json|jsonl)$/i, json],
  [/\.py$/i, python],
  [/\.(m?js|jsx|ts|tsx|mts)$/i, () => javascript({typescript: true, jsx: true})],
];
const languageOf = (path: string): Extension => LANGUAGES.find(([pattern]) => pattern.test(path))?.[1]() ?? [];

/** The colours are those of the page: its variables reach into the shadow root. */
const theme = EditorView.theme({
  '&': {height: '100%', fontSize: '13.5px', backgroundColor: 'var(--bg)', color: 'var(--text)'},
  '&.cm-focused': {outline: 'none'},
  '.cm-scroller': {fontFamily: 'var(--mono)', lineHeight: '1.6'},
  '.cm-content': {padding: '12px 0', caretColor: 'var(--accent)'},
  '.cm-gutters': {backgroundColor: 'var(--bg)', color: 'var(--faint)', border: 'none'},
  '.cm-activeLine, .cm-activeLineGutter': {backgroundColor: 'color-mix(in srgb, var(--hover) 45%, transparent)'},
  '.cm-cursor': {borderLeftColor: 'var(--accent)'},
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {backgroundColor: 'color-mix(in srgb, var(--accent) 24%, transparent)'},
  '.cm-panels': {backgroundColor: 'var(--side)', color: 'var(--text)'},
  '.cm-changedLine': {backgroundColor: 'var(--good-soft) !important'},
  '.cm-deletedChunk': {backgroundColor: 'var(--bad-soft) !important'},
  '.cm-changedText': {background: 'color-mix(in srgb, var(--good) 25%, transparent) !important'},
  '.cm-deletedChunk .cm-deletedText': {background: 'color-mix(in srgb, var(--bad) 25%, transparent) !important'},
});
const colours = HighlightStyle.define([
  {tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--accent)'},
  {tag: [tags.string, tags.special(tags.string)], color: 'var(--good)'},
  {tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--busy)'},
  {tag: [tags.comment, tags.meta], color: 'var(--faint)', fontStyle: 'italic'},
  {tag: tags.heading, fontWeight: '700'},
  {tag: tags.strong, fontWeight: '700'},
  {tag: tags.emphasis, fontStyle: 'italic'},
  {tag: [tags.propertyName, tags.link, tags.url, tags.definition(tags.variableName)], color: 'var(--accent)'},
]);

function mount(host: HTMLElement, doc: string, extensions: Extension): EditorView {
  const root = host.shadowRoot ?? host.attachShadow({mode: 'open'});
  root.replaceChildren();
  const parent = document.createElement('div');
  parent.style.height = '100%';
  root.append(parent);
  const common = [lineNumbers(), drawSelection(), EditorView.lineWrapping, syntaxHighlighting(colours), theme];
  return new EditorView({root, parent, state: EditorState.create({doc, extensions: [common, extensions]})});
}

export function Editor({path, text, revision, isReadOnly, onChange, onSave}: {
  path: string; text: string;
  /** Changes when `text` comes from elsewhere, so that the editor takes it. */
  revision: string;
  isReadOnly: boolean; onChange: (text: string) => void; onSave: () => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const calls = useRef({onChange, onSave});
  calls.current = {onChange, onSave};
  useEffect(() => {
    const save = {key: 'Mod-s', preventDefault: true, run: () => { calls.current.onSave(); return true; }};
    // Tab indents; Escape and then Tab leaves the editor (WCAG 2.1.2).
    const view = mount(host.current!, text, [
      history(), indentOnInput(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches(), languageOf(path),
      keymap.of([save, ...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
      EditorState.readOnly.of(isReadOnly), EditorView.contentAttributes.of({'aria-label': `Content of ${path}`}),
      EditorView.updateListener.of(update => update.docChanged && calls.current.onChange(update.state.doc.toString())),
    ]);
    return () => view.destroy();
    // The text is the editor's own until a revision comes from elsewhere.
  }, [path, revision, isReadOnly]);
  return <div className="editor" ref={host} />;
}

/** The differences between two texts, in one column: those that went, and those that came. */
export function DiffEditor({path, before, after}: {path: string; before: string; after: string}) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = mount(host.current!, after, [
      unifiedMergeView({original: before, mergeControls: false, collapseUnchanged: {margin: 3, minSize: 6}, syntaxHighlightDeletions: false}),
      languageOf(path), EditorState.readOnly.of(true), EditorView.contentAttributes.of({'aria-label': `Differences of ${path}`}),
    ]);
    return () => view.destroy();
  }, [path, before, after]);
  return <div className="editor" ref={host} />;
}
