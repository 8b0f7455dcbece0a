import { GatewayError } from '#kernel/errors.ts'
import { defineValueSource } from '#sdk/mapper/mapper-module.ts'
import { text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type readParameters, withParameters } from '#sdk/module/parameters.ts'
import type { SourceItem, ValueSource } from '#sdk/target/mapper.ts'
import { notInSource } from '#sdk/target/mapper.ts'
import { hasQueries, namePlaces, type QueryRow, type QueryTarget } from '#sdk/target/query-target.ts'
import type { LookupHost } from '#sdk/target/target.ts'

const place = 'search'
const most = 1_000

const parameters = {
  targetName: text({ about: 'The SQL target to query.', required: true, reference: 'target' }),
  noParamSQL: text({ about: 'The `select` of the whole list.', required: true }),
  paramSQL: text({
    about: "The `select` of a search; its `?` is the text searched for, as `like ? escape '\\'` takes it.",
    required: true,
  }),
  exactSQL: text({ about: 'The `select` that finds a value; its `?` is the value.', required: true }),
  nameField: text({ about: 'The column that is shown.', required: true }),
  valueField: text({ about: 'The column that is the value.', required: true }),
  maxEntries: wholeNumber({ about: 'Maximum number of rows in an answer.', fallback: 0, min: 0, max: most }),
  maxEntrie: wholeNumber({
    about: 'Another spelling of `maxEntries`, which existing YAML has.',
    fallback: 0,
    min: 0,
    max: most,
  }),
  errorMessage: text({ about: 'The error for a value without a row.', fallback: notInSource }),
}

type Config = ReturnType<typeof readParameters<typeof parameters>>

/** Values from the rows of an SQL target. */
export default defineValueSource({
  className: 'sources.Database',
  aliases: ['com.tremolosecurity.scalejs.register.dynamicSource.LoadFromDatabaseTarget'],
  ...withParameters(parameters),
  create: (config, host) => openDatabaseSource(config, host),
})

function openDatabaseSource(config: Config, { targets }: Pick<LookupHost, 'targets'>): ValueSource {
  const { targetName, nameField, valueField, errorMessage } = config
  const maxEntries = config.maxEntries || config.maxEntrie || 100
  const [whole, searched, exact] = [config.noParamSQL, config.paramSQL, config.exactSQL].map((statement) =>
    namePlaces(statement, place),
  ) as [string, string, string]
  const target = queryTarget(targets, targetName)
  return {
    async list({ search, limit }) {
      const bound = search === undefined ? {} : { [place]: `%${escapeLike(search)}%` }
      const rows = await target.readRows(search === undefined ? whole : searched, bound, Math.min(limit, maxEntries))
      return rows.flatMap((row): SourceItem[] => {
        const value = cell(row, valueField)
        return value === '' ? [] : [{ name: cell(row, nameField) || value, value }]
      })
    },
    async check(value) {
      const rows = await target.readRows(exact, { [place]: value }, 2)
      return rows.some((row) => cell(row, valueField) === value) ? undefined : errorMessage
    },
  }
}

/** Fails when the gateway starts, not when a user registers. */
function queryTarget(targets: LookupHost['targets'], name: string): QueryTarget {
  const target = targets.get(name)
  if (!hasQueries(target)) throw new Error(`the target "${name}" is not a database that can be asked`)
  return target
}

/** Databases change the letter case of names. */
function cell(row: QueryRow, column: string): string {
  const name = Object.keys(row).find((key) => key.toLowerCase() === column.toLowerCase())
  if (name === undefined) throw new GatewayError('TARGET_FAILED', `the statement gives no column "${column}"`)
  return row[name] ?? ''
}

/** The text as a part of a `like` pattern with the backslash as escape character. */
export const escapeLike = (text: string): string => text.replace(/[\\%_]/g, '\\$&')
