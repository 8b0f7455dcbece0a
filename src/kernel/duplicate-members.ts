const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs

/**
 * The name of a member that stands twice in one object of a JSON text; undefined when there is none. JSON.parse takes the
 * last of them in silence, and other readers the first. The text must be JSON.
 */
export function duplicateMember(text: string): string | undefined {
  const open: (Set<string> | undefined)[] = []
  let last = ''
  for (const [token] of text.matchAll(tokens)) {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (token === ':') {
      const name: string = JSON.parse(last)
      const names = open.at(-1)
      if (names?.has(name)) return name
      names?.add(name)
    } else if (token !== ',') last = token
  }
  return undefined
}
