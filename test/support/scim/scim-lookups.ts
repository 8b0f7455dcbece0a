import { cp, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Other lookups than those of examples/scim, or another system with the users; all else is the same. */
export interface ScimLookups {
  readonly name: string
  /** Whether its requirements are on this machine; true if absent. */
  readonly isThere?: () => boolean
  /** Whether it returns versions, and binds changes to them. */
  readonly keepsVersions: boolean
  /** Starts its requirements, such as a server. */
  open(): Promise<OpenLookups>
}

export interface OpenLookups {
  /** Parameters of the gateways instead of `lookupTarget: people`, which stays if absent. */
  readonly parameters?: Readonly<Record<string, string>>
  /** YAML files that are added, or replace those of the example, such as its `people.yaml`. */
  readonly files: Readonly<Record<string, string>>
  close?(): Promise<void>
}

/** Lookup parameters for users below `ou=staff`, named by `userName`, with the system's own ids. */
export const directoryParameters = {
  lookupFromLDAP: '"true"',
  searchBase: 'ou=staff,o=Tremolo',
  uidAttributeName: 'userName',
  idAttributeName: 'entryUUID',
  groupLookupAttributeName: 'cn',
  groupIdName: 'entryUUID',
}

/** The example's own database target, read through the virtual directory. */
export const throughDirectory: ScimLookups = {
  name: 'through the directory',
  keepsVersions: false,
  open: async () => ({
    parameters: directoryParameters,
    files: {
      'directory.yaml': `apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata:
  name: staff
spec:
  className: directory.Target
  suffix: ou=staff,o=Tremolo
  params:
    target: people
    people: ou=people
    userAttribute: userName
`,
    },
  }),
}

/** The example's `people.yaml` with another target. */
export async function peopleIn(
  className: string,
  params: Readonly<Record<string, readonly string[]>>,
): Promise<string> {
  const given = Object.entries(params).flatMap(([name, values]) =>
    values.map((value) => `\n    - name: ${JSON.stringify(name)}\n      value: ${JSON.stringify(value)}`),
  )
  const text = await readFile('examples/scim/people.yaml', 'utf8')
  const replaced = text.replace(
    'className: targets.Database\n  params: []',
    () => `className: ${className}\n  params:${given.join('')}`,
  )
  if (replaced === text) throw new Error('examples/scim/people.yaml has changed')
  return replaced
}

/** A copy of examples/scim with these lookups; the caller removes it. */
export async function scimConfiguration(lookups: OpenLookups): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-scim-config-'))
  await cp('examples/scim', folder, { recursive: true })
  for (const [name, text] of Object.entries(lookups.files)) await writeFile(join(folder, name), text)
  const { parameters } = lookups
  if (parameters === undefined) return folder
  for (const name of (await readdir(folder)).filter((file) => file.endsWith('.yaml'))) {
    const text = await readFile(join(folder, name), 'utf8')
    const replaced = withParameters(text, parameters)
    if (replaced !== text) await writeFile(join(folder, name), replaced)
  }
  return folder
}

/** A gateway's own parameters take precedence. */
function withParameters(text: string, parameters: Readonly<Record<string, string>>): string {
  const lines = text.split('\n')
  return lines
    .flatMap((line, i) => {
      const indent = /^( +)lookupTarget: people$/.exec(line)?.[1]
      if (indent === undefined) return [line]
      const isBeside = (other: string): boolean => other.startsWith(indent) && other[indent.length] !== ' '
      const [above, below] = [lines.slice(0, i).reverse(), lines.slice(i)].map((side) => {
        const end = side.findIndex((other) => !isBeside(other))
        return side.slice(0, end < 0 ? side.length : end)
      })
      const said = [...(above ?? []), ...(below ?? [])].map((other) => other.trim().split(':', 1)[0])
      return Object.entries(parameters).flatMap(([name, value]) =>
        said.includes(name) ? [] : [`${indent}${name}: ${value}`],
      )
    })
    .join('\n')
}
