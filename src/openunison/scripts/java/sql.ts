import { askGateway } from './host-bridge.ts'
import { IllegalArgumentException, IllegalStateException } from './java-exception.ts'
import { javaText } from './java-value.ts'

type Row = Readonly<Record<string, string>>

/** javax.sql.DataSource of a database target. The gateway has the connections; a script only reads. */
export class DataSource {
  readonly #target: string

  constructor(target: string) {
    this.#target = target
  }

  getConnection(): Connection {
    return new Connection(this.#target)
  }
}

/** java.sql.Connection. Each statement has a transaction of its own, so there is nothing to close. */
export class Connection {
  readonly #target: string
  #closed = false

  constructor(target: string) {
    this.#target = target
  }

  createStatement(): Statement {
    return new Statement((sql) => this.#read(sql))
  }

  close(): void {
    this.#closed = true
  }

  isClosed(): boolean {
    return this.#closed
  }

  #read(statement: string): readonly Row[] {
    if (this.#closed) throw new IllegalStateException('the connection is closed')
    return askGateway('readRows', { target: this.#target, statement }) as readonly Row[]
  }
}

/** java.sql.Statement. */
export class Statement {
  readonly #read: (sql: string) => readonly Row[]

  constructor(read: (sql: string) => readonly Row[]) {
    this.#read = read
  }

  executeQuery(sql: unknown): ResultSet {
    return new ResultSet(this.#read(javaText(sql)))
  }

  close(): void {}
}

/** java.sql.ResultSet. Columns have their name in any letter case, or their position from 1. */
export class ResultSet {
  readonly #rows: readonly Row[]
  #at = -1

  constructor(rows: readonly Row[]) {
    this.#rows = rows
  }

  next(): boolean {
    if (this.#at < this.#rows.length) this.#at++
    return this.#at < this.#rows.length
  }

  /** Empty for a column without a value. */
  getString(column: unknown): string {
    const row = this.#rows[this.#at]
    if (row === undefined) throw new IllegalStateException('there is no row: call next() first')
    const wanted = javaText(column)
    const columns = Object.entries(row)
    const found =
      typeof column === 'number'
        ? columns[column - 1]
        : columns.find(([name]) => name.toLowerCase() === wanted.toLowerCase())
    if (found === undefined) throw new IllegalArgumentException(`there is no column ${wanted}`)
    return found[1]
  }

  /** 0 for a column without a value. */
  getInt(column: unknown): number {
    return this.getLong(column)
  }

  getLong(column: unknown): number {
    const text = this.getString(column)
    const number = Math.trunc(Number(text))
    if (Number.isSafeInteger(number)) return number
    throw new IllegalArgumentException(`"${text}" is not a number`)
  }

  close(): void {}
}
