import type { NamedGroup } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { foldKey, isStorable } from '#storage/client/text-keys.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'

const statements = perDialect((dialect) => ({
  hold: fixed<{ collection: number; key: string }, { id: string }>(dialect, (db, at) => {
    const query = db
      .selectFrom('entries')
      .select('id')
      .where('collection', '=', at('collection'))
      .where('key', '=', at('key'))
    // Others may join and leave the group meanwhile; only its name and its being there stay.
    return dialect === 'postgres' ? query.forKeyShare() : query
  }),
}))

/** The group keeps this name until the transaction ends. Throws VERSION_MISMATCH when it has it no more. */
export async function holdGroup(tx: SqlTransaction, collection: number, { name, id }: NamedGroup): Promise<void> {
  const query = statements(tx.dialect).hold({ collection, key: foldKey(name) })
  const [found] = isStorable(name) ? await tx.query(query) : []
  if (found?.id !== id) throw new GatewayError('VERSION_MISMATCH', `the group ${name} is gone or another by now`)
}
