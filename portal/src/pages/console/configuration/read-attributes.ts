interface ReadAttributes {
  readonly attributes: Readonly<Record<string, readonly string[]>>
  /** The value of `dn`. */
  readonly dn?: string
  /** The first line that is not `name=value`. */
  readonly wrong?: string
}

/** Reads lines such as `sub=idp`; a name may repeat, and `dn` is the name of the caller. */
export function readAttributes(text: string): ReadAttributes {
  const attributes = new Map<string, string[]>()
  let dn: string | undefined
  for (const line of text.split('\n').map((each) => each.trim())) {
    if (line === '') continue
    const equals = line.indexOf('=')
    if (equals < 1) return { attributes: {}, wrong: line }
    const [name, value] = [line.slice(0, equals).trim(), line.slice(equals + 1).trim()]
    if (name === 'dn') dn = value
    else attributes.set(name, [...(attributes.get(name) ?? []), value])
  }
  return { attributes: Object.fromEntries(attributes), ...(dn === undefined ? {} : { dn }) }
}
