import { ScrollArea, Table, Text } from '@mantine/core'
import { useConfig } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { NameBadges } from '../../components/name-badges.tsx'

/** The user's groups. */
export function Groups({ groups }: { readonly groups: readonly string[] }) {
  const { t } = useTranslation()
  const { groupsAreJson, groupsFields } = useConfig()
  if (groups.length === 0) return <Text c="dimmed">{t('profile.noGroups')}</Text>
  if (groupsAreJson) return <GroupTable rows={groups.flatMap(readGroups)} fields={groupsFields} />
  return <NameBadges names={[...groups].sort((one, other) => one.localeCompare(other))} size="lg" />
}

type Row = Readonly<Record<string, unknown>>

/** A JSON text with one group or a list of them; empty otherwise. */
function readGroups(text: string): readonly Row[] {
  try {
    const read: unknown = JSON.parse(text)
    const list: readonly unknown[] = Array.isArray(read) ? read : [read]
    return list.filter((one): one is Row => typeof one === 'object' && one !== null)
  } catch {
    return []
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
