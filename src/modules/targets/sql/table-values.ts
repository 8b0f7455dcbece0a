import { sql } from 'kysely'
import type { SqlTransaction } from '#protocols/sql/sql-database.ts'
import type { ValuesLayout } from './layout.ts'
import { tableId } from './table-name.ts'
import { bound, equalsExactly, type Sql } from './table-sql.ts'

/**
 * Brings the rows of one attribute of one user from the values that are there to those that are wanted. Rows that can
 * stay do, with whatever else they hold; where a number says the order and it cannot be kept, all are written anew.
 */
export async function writeValues(
  tx: SqlTransaction,
  layout: ValuesLayout,
  user: string,
  present: readonly string[],
  wanted: readonly string[],
): Promise<void> {
  const kept = present.filter((value) => wanted.includes(value))
  const inOrder = layout.position === undefined || kept.every((value, i) => value === wanted[i])
  if (!inOrder) {
    await tx.run(sql`delete from ${tableId(layout.table)} where ${ofUser(tx, layout, user)}`)
    return insertValues(tx, layout, user, wanted, 0)
  }
  for (const value of present) {
    if (wanted.includes(value)) continue
    const isValue = equalsExactly(layout.value, value, tx.dialect)
    await tx.run(sql`delete from ${tableId(layout.table)} where ${ofUser(tx, layout, user)} and ${isValue}`)
  }
  const added = wanted.filter((value) => !kept.includes(value))
  if (added.length > 0) await insertValues(tx, layout, user, added, await nextPosition(tx, layout, user))
}

export async function deleteValues(tx: SqlTransaction, layout: ValuesLayout, user: string): Promise<void> {
  await tx.run(sql`delete from ${tableId(layout.table)} where ${ofUser(tx, layout, user)}`)
}

const ofUser = (tx: SqlTransaction, { user: column }: ValuesLayout, user: string): Sql =>
  sql`${sql.id(column.name)} = ${bound(column, user, tx.dialect)}`

/** Rows of one statement. */
const batch = 200

async function insertValues(
  tx: SqlTransaction,
  { table, user: userColumn, value: valueColumn, position }: ValuesLayout,
  user: string,
  values: readonly string[],
  first: number,
): Promise<void> {
  const columns = [userColumn, valueColumn, ...(position === undefined ? [] : [position])]
  const rows = values.map((value, i) => {
    const texts = [user, value, String(first + i)]
    return sql`(${sql.join(columns.map((column, j) => bound(column, texts[j] ?? '', tx.dialect)))})`
  })
  const into = sql`${tableId(table)} (${sql.join(columns.map(({ name }) => sql.id(name)))})`
  for (let done = 0; done < rows.length; done += batch) {
    await tx.run(sql`insert into ${into} values ${sql.join(rows.slice(done, done + batch))}`)
  }
}

async function nextPosition(tx: SqlTransaction, layout: ValuesLayout, user: string): Promise<number> {
  if (layout.position === undefined) return 0
  const last = sql`max(${sql.id(layout.position.name)})`
  const rows = await tx.query(
    sql`select cast(${last} as text) as last from ${tableId(layout.table)} where ${ofUser(tx, layout, user)}`,
  )
  const number = rows[0]?.['last']
  return typeof number === 'string' ? Number(number) + 1 : 0
}
