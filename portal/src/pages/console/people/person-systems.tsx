import { Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { SystemOfPerson } from '#features/portal/contract/console-reconciliations.ts'
import { systemsQuery } from '../../../api/reconciliations.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Answer } from '../../../components/answer.tsx'
import { Facts } from '../../../components/facts.tsx'
import { kindTexts } from '../../../components/row-texts.ts'
import { Status } from '../../../components/status.tsx'
import { candidateName } from '../reconciliations/decide-dialog.tsx'
import { RowChange } from '../reconciliations/row-change.tsx'
import { Section } from '../section.tsx'

/** What each system that is compared has of a user, and what differs. */
export function PersonSystems({ id }: { readonly id: string }) {
  const { t } = useTranslation()
  const query = useQuery(systemsQuery(id))
  return (
    <Answer query={query} rows={2}>
      {({ systems }) => (
        <Stack>
          {systems.length === 0 && <Text c="dimmed">{t('drift.none')}</Text>}
          {systems.map((system) => (
            <Section key={system.reconciliation} title={isolated(system.reconciliation)}>
              <SystemFacts system={system} />
            </Section>
          ))}
        </Stack>
      )}
    </Answer>
  )
}

function SystemFacts({ system }: { readonly system: SystemOfPerson }) {
  const { t, relative } = useTranslation()
  const { reconciliation, target, login, rule, candidates, account, problem, compared, differences } = system
  const values = (list: readonly string[]): string => list.map(isolated).join(', ')
  return (
    <>
      {problem !== undefined ? (
        <Status tone="bad" icon="warning" text={t('systems.unread', { target, problem })} />
      ) : candidates !== undefined ? (
        <Text>
          {t('plans.candidates', { names: candidates.map((one) => candidateName(one, candidates)).join(', ') })}
        </Text>
      ) : account === undefined ? (
        <Text>{t(rule === 'link' ? 'systems.noLinked' : 'systems.noAccount', { target, login })}</Text>
      ) : (
        <>
          <Text>{t('systems.has', { target, login })}</Text>
          {rule !== undefined && (
            <Text size="sm" c="dimmed">
              {t('plans.matchedBy', { rule })}
            </Text>
          )}
          <Facts
            facts={[
              ...account.attributes.map(({ name, values: all, hidden }) => ({
                key: `attribute ${name}`,
                name,
                value: hidden === true ? t('users.hidden') : values(all),
              })),
              ...(account.groups.length === 0
                ? []
                : [{ key: 'groups', name: t('page.groups'), value: values(account.groups) }]),
            ]}
          />
        </>
      )}
      {compared === undefined ? (
        <Text c="dimmed">{t('drift.never')}</Text>
      ) : differences.length === 0 ? (
        <Text c="dimmed">{t('systems.noDifference', { when: relative(compared) })}</Text>
      ) : (
        differences.map((row) => (
          <div key={row.number}>
            <Text fw={600}>{`${t(kindTexts[row.kind])} · ${t('drift.compared', { when: relative(compared) })}`}</Text>
            <Text size="sm">{isolated(row.reason)}</Text>
            <RowChange row={row} />
          </div>
        ))
      )}
      <Group>
        <Link className="text-link" to="/console/reconciliations/$name" params={{ name: reconciliation }}>
          {isolated(reconciliation)}
        </Link>
      </Group>
    </>
  )
}
