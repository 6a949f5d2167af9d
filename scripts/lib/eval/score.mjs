/** What the results of an evaluation add up to. Pure. */

/** The value below which a share of the values lie; 0 of none. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

const sum = values => values.reduce((total, value) => total + value, 0);

/** `every`th of the messages, so that each label is among them as often as among all. */
export function chosen(messages, count) {
  if (count >= messages.length) return messages;
  return Array.from({length: count}, (_, at) => messages[Math.floor(at * messages.length / count)]);
}

/** Results of messages: `{label, strategy, tokens, cost, ms}`. A message about which no model was asked has no tokens: a rule was certain. */
export function scored(results) {
  const right = results.filter(({label, strategy}) => label === strategy);
  const byRule = results.filter(({tokens}) => tokens === 0);
  const asked = results.filter(({tokens}) => tokens > 0);
  return {
    count: results.length,
    right: right.length,
    byRule: byRule.length,
    byRuleRight: byRule.filter(({label, strategy}) => label === strategy).length,
    labels: Object.fromEntries(['simple', 'tool', 'complex'].map(label => {
      const of = results.filter(result => result.label === label);
      return [label, {
        count: of.length,
        simple: of.filter(({strategy}) => strategy === 'simple').length,
        tool: of.filter(({strategy}) => strategy === 'tool').length,
        complex: of.filter(({strategy}) => strategy === 'complex').length,
      }];
    })),
    tokens: sum(asked.map(({tokens}) => tokens)),
    cost: sum(results.map(({cost}) => cost)),
    p50: quantile(results.map(({ms}) => ms), 0.5),
    p95: quantile(results.map(({ms}) => ms), 0.95),
  };
}

/**
 * The reasons for which a story has failed; none if it is passed.
 *
 * `seen` is what happened: `{answer, end, tools, files, versions, steps}`, with the files after it by path, and versions by path before and after.
 */
export function faults(expects, seen) {
  const {tools = [], says = [], files = {}, unchanged = [], plan = 0, no_tools: none = false} = expects;
  const found = [];
  if (seen.end !== 'stop') found.push(`it ended with ${seen.end}`);
  if (tools.length > 0 && !tools.some(tool => seen.tools.includes(tool))) found.push(`none of ${tools.join(', ')} was called, but ${seen.tools.join(', ') || 'nothing'}`);
  if (none && seen.tools.length > 0) found.push(`${seen.tools.join(', ')} was called`);
  for (const pattern of says) if (!pattern.test(seen.answer)) found.push(`the answer does not match ${pattern}: ${JSON.stringify(seen.answer.slice(0, 120))}`);
  for (const [path, patterns] of Object.entries(files)) {
    const file = Object.entries(seen.files).find(([at]) => fits(at, path));
    if (!file) found.push(`there is no file ${path}`);
    else for (const pattern of patterns) if (!pattern.test(file[1])) found.push(`${file[0]} does not match ${pattern}`);
  }
  for (const path of unchanged) if (seen.versions.before[path] !== seen.versions.after[path]) found.push(`${path} was changed`);
  if (seen.steps < plan) found.push(`the plan has ${seen.steps} steps, of at least ${plan}`);
  return found;
}

const fits = (path, pattern) => new RegExp(`^${pattern.split('*').map(part => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('[^/]*')}$`, 'i').test(path);

const percent = (part, whole) => whole === 0 ? '-' : `${(100 * part / whole).toFixed(1)} %`;
const padded = (cells, widths) => cells.map((cell, at) => at === 0 ? String(cell).padEnd(widths[at]) : String(cell).padStart(widths[at])).join('  ');
function aligned(rows) {
  const widths = rows[0].map((_, at) => Math.max(...rows.map(row => String(row[at]).length)));
  return rows.map(row => padded(row, widths).trimEnd());
}

/** The tables of a report, as lines. */
export function report({messages, stories, model}) {
  const lines = [`Model: ${model}`];
  if (messages.length > 0) {
    const all = scored(messages);
    lines.push('', `Messages: ${all.right} of ${all.count} as labelled (${percent(all.right, all.count)})`, '');
    lines.push(...aligned([
      ['label', 'messages', 'as simple', 'as tool', 'as complex', 'accuracy'],
      ...Object.entries(all.labels).map(([label, of]) => [label, of.count, of.simple, of.tool, of.complex, percent(of[label], of.count)]),
    ]));
    lines.push('', ...aligned([
      ['decided by', 'messages', 'accuracy', 'tokens', 'tokens each', 'cost', 'p50', 'p95'],
      ['rules', all.byRule, percent(all.byRuleRight, all.byRule), 0, 0, '$0', ...times(messages.filter(({tokens}) => tokens === 0))],
      ['the model', all.count - all.byRule, percent(all.right - all.byRuleRight, all.count - all.byRule), all.tokens, Math.round(all.tokens / Math.max(1, all.count - all.byRule)), money(all.cost), ...times(messages.filter(({tokens}) => tokens > 0))],
    ]));
  }
  if (stories.length > 0) {
    const passed = stories.filter(({faults}) => faults.length === 0).length;
    lines.push('', `Stories: ${passed} of ${stories.length} passed`, '');
    lines.push(...aligned([
      ['story', 'passed', 'strategy', 'tokens', 'cost', 'time'],
      ...stories.map(({name, faults, strategies, tokens, cost, ms}) => [name, faults.length === 0 ? 'yes' : 'NO', strategies, tokens, money(cost), time(ms)]),
      ['all', `${passed}/${stories.length}`, '', sum(stories.map(({tokens}) => tokens)), money(sum(stories.map(({cost}) => cost))), time(sum(stories.map(({ms}) => ms)))],
    ]));
    for (const {name, faults} of stories) for (const fault of faults) lines.push('', `FAILED ${name}: ${fault}`);
  }
  return lines;
}

const times = results => [0.5, 0.95].map(share => time(quantile(results.map(({ms}) => ms), share)));
const time = ms => ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
const money = value => value === 0 ? '$0' : `$${value.toFixed(4)}`;
