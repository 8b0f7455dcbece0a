/** `127.0.0.1:8080`, `[::1]:0`, `localhost:80`. Throws an Error that says what is wrong with anything else. */
export function parseHostPort(text: string): { host: string; port: number } {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(text)
  const port = Number(match?.[2])
  if (match?.[1] === undefined || port > 65535) throw new Error(`not HOST:PORT: ${text}`)
  return { host: match[1].replace(/^\[|\]$/g, ''), port }
}
