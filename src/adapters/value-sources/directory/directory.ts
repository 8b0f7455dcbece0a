import type { DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { defineValueSource } from '#sdk/mapper/mapper-module.ts'
import { flag, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type readParameters, withParameters } from '#sdk/module/parameters.ts'
import type { SourceItem, ValueSource } from '#sdk/target/mapper.ts'
import { notInSource } from '#sdk/target/mapper.ts'
import type { LookupHost } from '#sdk/target/target.ts'

const parameters = {
  searchBase: parsed('distinguished name', (value) => Dn.parse(value), {
    about: 'The base of the entries in the virtual directory.',
    required: true,
  }),
  objectClass: text({ about: 'The `objectClass` of the entries.', required: true }),
  nameField: text({ about: 'The attribute that is shown.', required: true }),
  valueField: text({ about: 'The attribute that is the value.', required: true }),
  searchField: text({ about: 'The attribute to search; `nameField` when absent.' }),
  maxEntries: wholeNumber({ about: 'Maximum number of entries in an answer.', fallback: 100, min: 1, max: 1_000 }),
  sort: flag({ about: '`"false"` keeps the order of the directory.', fallback: true }),
  errorMessage: text({ about: 'The error for a value without an entry.', fallback: notInSource }),
}

type Config = ReturnType<typeof readParameters<typeof parameters>>

/** Values from entries of the virtual directory: groups, locations, users. */
export default defineValueSource({
  className: 'sources.Directory',
  aliases: ['com.tremolosecurity.scalejs.register.dynamicSource.LoadFromLDAP'],
  ...withParameters(parameters),
  create: (config, host) => openDirectorySource(config, host),
})

function openDirectorySource(config: Config, { directory }: Pick<LookupHost, 'directory'>): ValueSource {
  const { searchBase: base = new Dn([]), objectClass, nameField, valueField, maxEntries, sort, errorMessage } = config
  const searchField = config.searchField ?? nameField
  const attributes = [nameField, valueField]
  const ofClass: Filter = { kind: 'equal', attribute: 'objectClass', value: objectClass }
  const find = (filter: Filter, limit: number): Promise<readonly DirectoryEntry[]> =>
    directory.search({ base, scope: 'sub', filter: { kind: 'and', filters: [ofClass, filter] }, limit, attributes })
  return {
    async list({ search, limit }) {
      const wanted: Filter =
        search === undefined
          ? { kind: 'present', attribute: valueField }
          : { kind: 'substring', attribute: searchField, any: [search] }
      const found = await find(wanted, Math.min(limit, maxEntries))
      const items = found.flatMap(({ attributes: entry }): SourceItem[] => {
        const value = entry.first(valueField)
        return value === undefined ? [] : [{ name: entry.first(nameField) ?? value, value }]
      })
      return sort ? items.toSorted((a, b) => a.name.localeCompare(b.name, 'en')) : items
    },
    async check(value) {
      const found = await find({ kind: 'equal', attribute: valueField, value }, 2)
      return found.some(({ attributes: entry }) => entry.values(valueField).includes(value)) ? undefined : errorMessage
    },
  }
}
