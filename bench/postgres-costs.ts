import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { cpuSecondsByProcess } from './process-figures.ts'

/** What a PostgreSQL server on this machine spends. */
export class PostgresCosts {
  readonly #client: pg.Client
  readonly #server: number

  private constructor(client: pg.Client, server: number) {
    this.#client = client
    this.#server = server
  }

  static async open(url: string): Promise<PostgresCosts> {
    const client = new pg.Client(url)
    await client.connect()
    const { rows } = await client.query<{ data_directory: string }>('show data_directory')
    const file = readFileSync(join(rows[0]?.data_directory ?? '', 'postmaster.pid'), 'utf8')
    return new PostgresCosts(client, Number(file.split('\n')[0]))
  }

  /** Starts to measure. The result returns the CPU seconds since then, of all processes that still run. */
  cpu(): () => number {
    const before = cpuSecondsByProcess(this.#server)
    return () =>
      Array.from(cpuSecondsByProcess(this.#server), ([pid, seconds]) => seconds - (before.get(pid) ?? 0)).reduce(
        (a, b) => a + b,
        0,
      )
  }

  /** Bytes of the tables with their indexes. */
  async bytes(...tables: string[]): Promise<number> {
    const { rows } = await this.#client.query<{ bytes: string }>(
      'select sum(pg_total_relation_size(name::regclass)) as bytes from unnest($1::text[]) as name',
      [tables],
    )
    return Number(rows[0]?.bytes)
  }

  /** Bytes of the whole database. */
  async allBytes(): Promise<number> {
    const { rows } = await this.#client.query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
    return Number(rows[0]?.bytes)
  }

  async run(...statements: readonly string[]): Promise<void> {
    for (const statement of statements) await this.#client.query(statement)
  }

  close(): Promise<void> {
    return this.#client.end()
  }
}
