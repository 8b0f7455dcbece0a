import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

/** The run's PostgreSQL; empty if there is none. */
export const postgresUrl = (): string => inject('postgresUrl')

/** The address of an empty schema in the run's PostgreSQL. */
export async function freshSchema(): Promise<string> {
  const url = postgresUrl()
  const name = `test_${randomBytes(6).toString('hex')}`
  await runSql(url, `create schema ${name}`)
  const address = new URL(url)
  address.searchParams.set('options', `-c search_path=${name}`)
  return address.toString()
}

/** Runs a statement of the test beside the code under test. */
export async function runSql(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}
