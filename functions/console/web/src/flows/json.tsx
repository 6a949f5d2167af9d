export function Json({value, name = 'JSON'}: {value: unknown; name?: string}) {
  return <pre className="json" tabIndex={0} aria-label={name}>{value === undefined ? 'none' : JSON.stringify(value, null, 2)}</pre>;
}
