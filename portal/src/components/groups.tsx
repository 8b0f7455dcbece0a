import { ScrollArea, Table, Text } from '@mantine/core'
import { useConfig } from '../app/config.tsx'
import { useTranslation } from '../app/i18n.tsx'
import { isolated } from '../app/isolated.ts'
import { NameBadges } from './name-badges.tsx'

interface GroupsProps {
  readonly groups: readonly string[]
  readonly size?: 'lg'
}

/** The groups of a user: a table of those that come as JSON, where the portal has one, and the names of the others. */
export function Groups({ groups, size }: GroupsProps) {
  const { t } = useTranslation()
  const { groupsAreJson, groupsFields } = useConfig()
  const read = groups.map((group) => ({ group, rows: groupsAreJson ? readGroups(group) : undefined }))
  const rows = read.flatMap(({ rows = [] }) => rows)
  const names = read.filter(({ rows }) => rows === undefined).map(({ group }) => group)
  if (rows.length + names.length === 0) return <Text c="dimmed">{t('profile.noGroups')}</Text>
  const sorted = names.sort((one, other) => one.localeCompare(other))
  return (
    <>
      {rows.length > 0 && <GroupTable rows={rows} fields={groupsFields} />}
      {sorted.length > 0 && <NameBadges names={sorted} {...(size === undefined ? {} : { size })} />}
    </>
  )
}

type Row = Readonly<Record<string, unknown>>

/** A JSON text with one group or a list of them; undefined otherwise. */
function readGroups(text: string): readonly Row[] | undefined {
  try {
    const read: unknown = JSON.parse(text)
    const list: readonly unknown[] = Array.isArray(read) ? read : [read]
    return list.every((one): one is Row => typeof one === 'object' && one !== null) ? list : undefined
  } catch {
    return undefined
  }
}

/** Any JSON value, since it comes from elsewhere. */
function cellText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? isolated(value) : JSON.stringify(value)
}

function GroupTable({ rows, fields }: { readonly rows: readonly Row[]; readonly fields: readonly string[] }) {
  return (
    <ScrollArea>
      <Table>
        <Table.Thead>
          <Table.Tr>
            {fields.map((field) => (
              <Table.Th key={field}>{field}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows may be alike, and keep their order
            <Table.Tr key={i}>
              {fields.map((field) => (
                <Table.Td key={field}>{cellText(Object.hasOwn(row, field) ? row[field] : undefined)}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea>
  )
}
