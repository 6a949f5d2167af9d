import {useQuery} from '@tanstack/react-query';
import {useChats} from '../chats.ts';
import {hub, type Schemas} from '../hub.ts';
import {useAuthors} from '../names.ts';
import {href, useChoice} from '../router.ts';
import {count, Empty, Failure, Loading, money} from '../ui.tsx';

const DAYS = [7, 30, 90];
const day = (offset: number): string => new Date(Date.now() - offset * 86_400_000).toISOString().slice(0, 10);

export default function UsagePage({workspace}: {workspace: string}) {
  const [chosen, choose] = useChoice('days');
  const days = DAYS.find(one => `${one}` === chosen) ?? 30;
  const usage = useQuery({
    queryKey: [workspace, 'usage', days],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/usage', {path: {workspace_id: workspace}, query: {from: day(days - 1), to: day(0)}, signal}),
  });
  return (
    <div className="page">
      <header className="page-head">
        <h1>Usage</h1>
        <span className="spacer" />
        <select className="picker" aria-label="Days" value={days} onChange={event => choose(event.target.value)}>
          {DAYS.map(one => <option key={one} value={one}>Last {one} days</option>)}
        </select>
      </header>
      {usage.isPending && <Loading what="the usage" />}
      {usage.isError && <Failure error={usage.error} retry={() => void usage.refetch()} />}
      {usage.data && <Report workspace={workspace} usage={usage.data} days={days} />}
    </div>
  );
}

function Report({workspace, usage, days}: {workspace: string; usage: Schemas['UsageReport']; days: number}) {
  const {total, parts, other} = usage;
  const author = useAuthors(workspace);
  const titles = new Map(useChats(workspace).items?.map(chat => [chat.chat_id, chat.title]));
  if (total.calls === 0) return <Empty icon="chart" title="Nothing was used"><p>Turns that end are counted here, with their tokens and their cost.</p></Empty>;
  const byDay = Array.from({length: days}, (_, at) => {
    const date = day(days - 1 - at);
    const tokens = parts.filter(part => part.day === date).reduce((sum, part) => sum + part.input_tokens + part.output_tokens, 0);
    return {date, tokens};
  });
  const most = Math.max(...byDay.map(one => one.tokens), 1);
  return (
    <>
      <dl className="tiles">
        {[['Turns', count(total.turns)], ['Calls of models', count(total.calls)], ['Tokens read', count(total.input_tokens)], ['Tokens written', count(total.output_tokens)], ['Cost', money(total.cost_usd)]].map(([name, value]) => (
          <div className="tile" key={name}><dt>{name}</dt><dd>{value}</dd></div>
        ))}
      </dl>
      <section>
        <h2>Tokens per day (UTC)</h2>
        <div className="bars" role="img" aria-label={`Tokens per day, at most ${count(most)}. The tables below have the numbers.`}>
          {byDay.map(one => <span key={one.date} className={`bar ${one.tokens === 0 ? 'none' : ''}`} style={{height: one.tokens === 0 ? 2 : `${Math.max(3, 100 * one.tokens / most)}%`}} title={`${one.date}: ${count(one.tokens)}`} />)}
        </div>
        <p className="bars-axis"><span>{byDay[0]?.date}</span><span>{byDay.at(-1)?.date}</span></p>
      </section>
      <Table title="Models" rows={grouped(parts, part => part.model ?? 'the default model').map(([name, used]) => [name, undefined, used])} />
      <Table title="People" rows={grouped(parts, part => (part.user_id ? author(`user:${part.user_id}`) : 'unknown')).map(([name, used]) => [name, undefined, used])} />
      {other.length > 0 && <Table title="Outside of turns" rows={outside(other)} />}
      <Table title="Chats" rows={grouped(parts, part => part.chat_id).slice(0, 20).map(([id, used]) => [titles.get(id) ?? id.slice(-12), href(workspace, 'chats', [id]), used])} />
    </>
  );
}

type Used = Schemas['UsageTotals'];
function grouped(parts: Schemas['UsageByChat'][], key: (part: Schemas['UsageByChat']) => string): [string, Used][] {
  const groups = new Map<string, Used>();
  for (const part of parts) {
    const sum = groups.get(key(part)) ?? {turns: 0, calls: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0};
    for (const field of Object.keys(sum) as (keyof Used)[]) sum[field] += part[field];
    groups.set(key(part), sum);
  }
  return [...groups].sort(([, one], [, other]) => other.input_tokens - one.input_tokens);
}

/** Vectors for searches and descriptions of documents, by purpose and model. */
function outside(other: Schemas['UsageByPurpose'][]): [string, undefined, Used][] {
  const groups = new Map<string, Used>();
  for (const {purpose, model, calls, input_tokens, output_tokens, cost_usd} of other) {
    const name = `${purpose}: ${model}`;
    const sum = groups.get(name) ?? {turns: 0, calls: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0};
    groups.set(name, {...sum, calls: sum.calls + calls, input_tokens: sum.input_tokens + input_tokens, output_tokens: sum.output_tokens + output_tokens, cost_usd: sum.cost_usd + cost_usd});
  }
  return [...groups].map(([name, used]) => [name, undefined, used]);
}

function Table({title, rows}: {title: string; rows: [name: string, to: string | undefined, used: Used][]}) {
  return (
    <section>
      <h2>{title}</h2>
      <div className="table-scroll" tabIndex={0} role="region" aria-label={title}>
        <table className="wide">
          <thead><tr><th>Name</th><th className="number">Turns</th><th className="number">Read</th><th className="number">Written</th><th className="number">Cost</th></tr></thead>
          <tbody>
            {rows.map(([name, to, used]) => (
              <tr key={to ?? name}>
                <td>{to ? <a href={to}>{name}</a> : name}</td>
                <td className="number">{count(used.turns)}</td><td className="number">{count(used.input_tokens)}</td><td className="number">{count(used.output_tokens)}</td><td className="number">{money(used.cost_usd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
