import { Text } from '@mantine/core'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import type { SchemaMember, SchemaNode } from './schema-tree.ts'

/** Members at this depth are closed at first. */
const openDepth = 1

/** The members of a schema, each with its type, limits and own members. */
export function SchemaView({ node, depth = 0 }: { readonly node: SchemaNode; readonly depth?: number }) {
  const { t } = useTranslation()
  const { members, isCut } = node
  return (
    <>
      {members.length > 0 && (
        <ul className="api-members">
          {members.map((one) => (
            <Member key={`${one.kind} ${one.name}`} member={one} depth={depth} />
          ))}
        </ul>
      )}
      {isCut && (
        <Text size="sm" c="dimmed">
          {t('apis.cut')}
        </Text>
      )}
    </>
  )
}

function Member({ member, depth }: { readonly member: SchemaMember; readonly depth: number }) {
  const { t } = useTranslation()
  const { name, kind, required, node } = member
  const { type, description, limits, members, isCut } = node
  const head = (
    <>
      {kind === 'property' ? (
        <code className="api-name">{isolated(name)}</code>
      ) : (
        <span>{kind === 'any name' ? t('apis.anyName') : t('apis.alternative', { number: name })}</span>
      )}{' '}
      <span className="api-type">{isolated(type)}</span>
      {required && <span className="api-required"> {t('apis.required')}</span>}
    </>
  )
  const hasMore = members.length > 0 || isCut
  return (
    <li>
      {!hasMore && <div>{head}</div>}
      {description !== '' && hasMore === false && <Description text={description} />}
      {limits.length > 0 && !hasMore && <Limits limits={limits} />}
      {hasMore && (
        <details open={depth < openDepth}>
          <summary>{head}</summary>
          {description !== '' && <Description text={description} />}
          {limits.length > 0 && <Limits limits={limits} />}
          <SchemaView node={node} depth={depth + 1} />
        </details>
      )}
    </li>
  )
}

const Description = ({ text }: { readonly text: string }) => (
  <Text size="sm" lang="en">
    {isolated(text)}
  </Text>
)

const Limits = ({ limits }: { readonly limits: readonly string[] }) => (
  <Text size="xs" c="dimmed">
    {isolated(limits.join(', '))}
  </Text>
)
