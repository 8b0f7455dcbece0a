import {
  formerTable,
  knownAttributes,
  loginWorkflow,
  type ReplacedTable,
  type TableUse,
  unknownColumns,
} from '#openunison/report-tables/former-tables.ts'
import type { SqlToken } from '#protocols/sql/sql-tokens.ts'
import { reportViews, viewInsteadOf } from './report-views.ts'

interface ReadStatement {
  /** The names of the columns, if they have one; undefined if the statement does not name them all. */
  readonly columns: readonly (string | undefined)[] | undefined
  /** Tables and columns that the statement reads and reports may not, each with advice. */
  readonly problems: readonly string[]
  /** OpenUnison's tables, which are read from our views. */
  readonly replaced: readonly ReplacedTable[]
  /** The tokens, with names of attributes in the spelling of our views. */
  readonly tokens: readonly SqlToken[]
}

/**
 * Reads one `select` from its first word to its last, so that it sees every table, at any place. Rejects what it
 * does not understand. Throws an Error that says what is wrong.
 */
export function readStatement(tokens: readonly SqlToken[]): ReadStatement {
  const reading = new Reading(tokens)
  reading.statement()
  const { columns, problems, replaced } = reading
  return {
    columns,
    problems: [...problems, ...unknownColumns(tokens, replaced)],
    replaced,
    tokens: tokens.map((token, i) => reading.attributes.get(i) ?? token),
  }
}

/** One `select`, as far as former tables in it need to be known. */
interface Scope {
  readonly tables: ReplacedTable[]
  /** The texts that a column `name` is compared with, by their place. */
  readonly names: { readonly at: number; readonly token: SqlToken }[]
  /** A `name` is compared in another way. */
  otherNames: boolean
  /** A join keeps rows without a counterpart. */
  outer: boolean
}

const maxDepth = 50

class Reading {
  readonly problems: string[] = []
  readonly replaced: ReplacedTable[] = []
  readonly attributes = new Map<number, SqlToken>()
  columns: (string | undefined)[] | undefined = []
  readonly #scopes: Scope[] = []
  readonly #tokens: readonly SqlToken[]
  /** Tables that the statement defines, as far as it was read. */
  readonly #made = new Set<string>()
  #at = 0
  #depth = 0

  constructor(tokens: readonly SqlToken[]) {
    this.#tokens = tokens
  }

  statement(): void {
    if (this.#take('with')) {
      do this.#madeTable()
      while (this.#take(','))
    }
    this.#query(true)
    if (this.#now !== undefined) throw this.#unexpected()
  }

  #madeTable(): void {
    const name = this.#name()
    if (name === undefined) throw this.#unexpected()
    this.#expect('as')
    this.#expect('(')
    this.#query(false)
    this.#expect(')')
    this.#made.add(name)
  }

  #query(outermost: boolean): void {
    if (++this.#depth > maxDepth) throw new Error('is nested too deep')
    if (!this.#is('select')) throw new Error('must be a select, which may start with "with"')
    let first = outermost
    do {
      this.#expect('select')
      this.#scopes.push({ tables: [], names: [], otherNames: false, outer: false })
      this.#list(first)
      first = false
      if (this.#take('from')) {
        this.#tables()
        // Other syntax that a database allows after a table could hide the next one.
        if (this.#now !== undefined && !this.#is(')') && !this.#isWord(clauses)) throw this.#unexpected()
      }
      while (this.#now !== undefined && !this.#is(')') && !this.#isWord(setOperators)) {
        if (this.#is('from') && !this.#comparesDistinct()) throw this.#unexpected()
        if (this.#is('for')) throw this.#unexpected()
        this.#piece()
      }
      this.#closeScope()
    } while (this.#takeOperator())
    this.#depth--
  }

  /** Only now is it known what the `select` reads. */
  #closeScope(): void {
    const scope = this.#scopes.pop()
    if (scope === undefined) return
    const reads = (name: string): boolean => scope.tables.some((table) => table.name === name)
    const texts = scope.names.map(({ token }) => token.value.slice(1, -1))
    const use: TableUse = { requestsOnly: reads('approvals') && !scope.outer, logins: texts.includes(loginWorkflow) }
    for (const table of scope.tables) table.use = use
    if (!reads('userattributes') && !reads('approverattributes')) return
    const known = `there are ${knownAttributes.join(', ')}`
    if (scope.otherNames) this.problems.push(`compares the name of an attribute other than with "=": ${known}`)
    for (const { at, token } of scope.names) {
      const name = token.value.slice(1, -1).toLowerCase()
      if (knownAttributes.includes(name)) this.attributes.set(at, { ...token, value: `'${name}'`, sql: `'${name}'` })
      else this.problems.push(`reads the attribute "${name}", which is not open to reports: ${known}`)
    }
  }

  #noteName(): void {
    const scope = this.#scopes.at(-1)
    const [sign, token] = [this.#tokens[this.#at + 1], this.#tokens[this.#at + 2]]
    if (scope === undefined || sign === undefined) return
    if (sign.value === '=' && token?.kind === 'text') scope.names.push({ at: this.#at + 2, token })
    else if (/^(?:=|<>|!=|[<>]=?|in|like|ilike|not|between|similar)$/.test(sign.value)) scope.otherNames = true
  }

  #takeOperator(): boolean {
    if (!this.#isWord(setOperators)) return false
    this.#at++
    if (!this.#take('all')) this.#take('distinct')
    if (!this.#is('select')) throw this.#unexpected()
    return true
  }

  /** The selected columns, up to the `from`. */
  #list(named: boolean): void {
    let start = this.#at
    const end = (): void => {
      if (named) this.#column(this.#tokens.slice(start, this.#at))
      start = this.#at + 1
    }
    for (;;) {
      const over = this.#now === undefined || this.#is(')') || (this.#is('from') && !this.#comparesDistinct())
      if (over || this.#isWord(clauses)) break
      if (this.#is(',')) end()
      this.#piece()
    }
    end()
  }

  #column(tokens: readonly SqlToken[]): void {
    const last = tokens.at(-1)
    const before = tokens.at(-2)
    if (last?.value === '*' && last.kind === 'sign' && (before === undefined || before.value === '.')) {
      this.columns = undefined
      return
    }
    const isName =
      last?.kind === 'name' ||
      (last?.kind === 'word' && !valueWords.has(last.value) && (before?.kind !== 'sign' || /^[.)]$/.test(before.value)))
    this.columns?.push(isName ? (last.kind === 'name' ? last.value : last.sql) : undefined)
  }

  /** One token of an expression, or everything in parentheses. */
  #piece(): void {
    const token = this.#now
    if (token === undefined) throw this.#unexpected()
    if (token.kind === 'word') this.#checkWord(token.value)
    if (token.value === 'name' && (token.kind === 'word' || token.kind === 'name')) this.#noteName()
    const next = this.#tokens[this.#at + 1]
    if (token.kind === 'name' && next?.value === '(' && next.kind === 'sign') throw unknownFunction(token.value)
    const callee = this.#tokens[this.#at - 1]
    this.#at++
    if (token.kind === 'sign' && token.value === '(') this.#group(callee?.kind === 'word' ? callee.value : '')
  }

  #checkWord(word: string): void {
    if (refusedWords.has(word) || word === 'select' || word === 'with' || setOperators.has(word)) {
      throw this.#unexpected()
    }
    const next = this.#tokens[this.#at + 1]
    const opens = next?.kind === 'sign' && next.value === '('
    // SQLite reads a table if a name follows instead of a list.
    if (word === 'in' && !opens) throw new Error('needs parentheses after "in"')
    if (word === 'as' && next?.kind === 'text') {
      throw new Error(`must have the name of a column in double quotes: as "${next.value.slice(1, -1)}"`)
    }
    const qualified = this.#tokens[this.#at - 1]?.value === '.'
    const known = pureFunctions.has(word) || rewrittenFunctions.has(word) || beforeParenthesis.has(word)
    if (opens && (qualified || !known)) throw unknownFunction(word)
  }

  /**
   * After an opening parenthesis, of a function if there is one. Without a query inside, no `from` of one is
   * inside.
   */
  #group(callee: string): void {
    if (this.#is('select')) {
      this.#query(false)
    } else {
      if (++this.#depth > maxDepth) throw new Error('is nested too deep')
      while (this.#now !== undefined && !this.#is(')')) {
        if (this.#is('from') && !fromWithin.has(callee) && !this.#comparesDistinct()) throw this.#unexpected()
        this.#piece()
      }
      this.#depth--
    }
    this.#expect(')')
  }

  /** After `from`, and after a parenthesis among tables. */
  #tables(): void {
    if (++this.#depth > maxDepth) throw new Error('is nested too deep')
    do {
      this.#table()
      while (this.#isJoin()) this.#join()
    } while (this.#take(','))
    this.#depth--
  }

  #join(): void {
    const scope = this.#scopes.at(-1)
    while (this.#isWord(joinWords) && !this.#is('join')) {
      if (scope !== undefined && /^(?:left|right|full|outer)$/.test(this.#now?.value ?? '')) scope.outer = true
      this.#at++
    }
    this.#expect('join')
    this.#table()
    if (this.#take('using')) {
      this.#expect('(')
      this.#group('')
    } else if (this.#take('on')) {
      while (this.#now !== undefined && !this.#is(')') && !this.#is(',') && !this.#isJoin() && !this.#isWord(clauses)) {
        if (this.#is('from') && !this.#comparesDistinct()) throw this.#unexpected()
        this.#piece()
      }
    }
  }

  #table(): void {
    const at = this.#at
    let former: string | undefined
    if (this.#take('(')) {
      if (this.#is('select')) this.#query(false)
      else this.#tables()
      this.#expect(')')
    } else {
      const token = this.#now
      const name = this.#name()
      if (name === undefined || token === undefined) throw this.#unexpected()
      if (this.#is('.') || this.#is('('))
        throw new Error(`must read views by their name alone, not "${name}${this.#now?.value}…"`)
      former = this.#checkTable(name, token)
    }
    const alias = this.#alias()
    if (former === undefined) return
    const table = { at, name: former, alias, use: { requestsOnly: false, logins: false } }
    this.replaced.push(table)
    this.#scopes.at(-1)?.tables.push(table)
  }

  #alias(): string | undefined {
    const start = this.#at
    if (this.#take('as')) {
      if (this.#name() === undefined) throw this.#unexpected()
    } else if (this.#now?.kind === 'name') {
      this.#at++
    } else if (
      this.#now?.kind === 'word' &&
      !this.#isWord(clauses) &&
      !this.#isJoin() &&
      !/^(?:on|using|for)$/.test(this.#now.value)
    ) {
      if (refusedWords.has(this.#now.value)) throw this.#unexpected()
      this.#at++
    }
    return this.#at === start ? undefined : this.#tokens[this.#at - 1]?.value
  }

  /** The name of a former table, if it is one that we can read from our views. */
  #checkTable(name: string, { kind, sql }: SqlToken): string | undefined {
    if (this.#made.has(name) || Object.hasOwn(reportViews, name)) return undefined
    if (formerTable(name)?.select !== undefined) return name.toLowerCase()
    const written = kind === 'word' ? sql : name
    const instead = viewInsteadOf(name)
    const advice = instead === undefined ? `there are ${Object.keys(reportViews).join(', ')}` : `use ${instead}`
    const problem = `reads "${written}", which is not open to reports: ${advice}`
    if (!this.problems.includes(problem)) this.problems.push(problem)
    return undefined
  }

  get #now(): SqlToken | undefined {
    return this.#tokens[this.#at]
  }

  #is(value: string): boolean {
    const now = this.#now
    return now !== undefined && (now.kind === 'word' || now.kind === 'sign') && now.value === value
  }

  #isWord(words: ReadonlySet<string>): boolean {
    return this.#now?.kind === 'word' && words.has(this.#now.value)
  }

  /** `left` and `right` are also functions. */
  #isJoin(): boolean {
    const called = (this.#is('left') || this.#is('right')) && this.#tokens[this.#at + 1]?.value === '('
    return this.#isWord(joinWords) && !called
  }

  /** At a `from` that belongs to `is [not] distinct from`. */
  #comparesDistinct(): boolean {
    const before = (steps: number): string | undefined => this.#tokens[this.#at - steps]?.value
    return before(1) === 'distinct' && (before(2) === 'is' || (before(2) === 'not' && before(3) === 'is'))
  }

  #take(value: string): boolean {
    if (!this.#is(value)) return false
    this.#at++
    return true
  }

  #expect(value: string): void {
    if (!this.#take(value)) throw this.#unexpected()
  }

  /** As the databases compare it. */
  #name(): string | undefined {
    const token = this.#now
    if (token?.kind !== 'word' && token?.kind !== 'name') return undefined
    if (token.kind === 'word' && (refusedWords.has(token.value) || /^(?:select|with)$/.test(token.value)))
      return undefined
    this.#at++
    return token.value
  }

  #unexpected(): Error {
    const now = this.#now
    if (now === undefined) return new Error('ends too early')
    const written = now.kind === 'place' ? `:${now.value}` : now.sql
    return new Error(`has "${written.slice(0, 40)}" where a report cannot have it`)
  }
}

const unknownFunction = (name: string): Error => new Error(`calls "${name}", which is not open to reports`)

/** Functions of SQLite and PostgreSQL that only compute something from their arguments, and reveal nothing else. */
export const pureFunctions: ReadonlySet<string> = new Set(
  `abs age avg cast ceil ceiling char_length coalesce concat concat_ws count cume_dist date date_part date_trunc datetime
  dense_rank extract first_value floor greatest group_concat ifnull iif initcap instr julianday lag last_value lead least
  left length lower ltrim max min mod now nth_value ntile nullif percent_rank position rank replace right round row_number
  rtrim sign split_part strftime string_agg strpos substr substring sum time to_char to_date to_timestamp total trim unixepoch
  upper`.split(/\s+/),
)

/** Functions of MariaDB that are rewritten. */
const rewrittenFunctions: ReadonlySet<string> = new Set(['if', 'curdate', 'datediff', 'date_sub'])

/** Functions with a `from` among their arguments. */
const fromWithin: ReadonlySet<string> = new Set(['extract', 'substring', 'trim'])

/** Words that may precede a parenthesis without calling a function. */
const beforeParenthesis: ReadonlySet<string> = new Set(
  `all and any as between by case char decimal distinct else exists filter having ilike in like limit not numeric offset on
  or over select some then using varchar when where escape`.split(/\s+/),
)

/** Words that a statement which only reads views does not need, or that read something not named in a `from`. */
const refusedWords: ReadonlySet<string> = new Set(
  'into values table recursive lateral tablesample insert update delete returning pragma attach'.split(' '),
)

const setOperators: ReadonlySet<string> = new Set(['union', 'intersect', 'except'])

/** What ends a list of tables. */
const clauses: ReadonlySet<string> = new Set([
  ...setOperators,
  ...'where group having order limit offset fetch window'.split(' '),
])

const joinWords: ReadonlySet<string> = new Set('natural left right full inner cross outer join'.split(' '))

/** Words that end an expression, and so are not the name of a column. */
const valueWords: ReadonlySet<string> = new Set(['end', 'null', 'true', 'false', 'unknown', 'all', 'distinct'])
