import { Anchor, Button, Group, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type {
  AccessRequest,
  AccessWorkflow,
  EndedAccess,
  GroupAccess,
  TimedAccess,
} from '#features/portal/contract/main-access.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import type { MessageKey } from '../../app/messages.ts'
import { Status } from '../../components/status.tsx'
import { removalLook } from './access-states.ts'

interface RowProps {
  readonly name: string
  readonly children: ReactNode
  readonly actions?: ReactNode
}

function Row({ name, children, actions }: RowProps) {
  return (
    <Group component="li" className="card" justify="space-between" gap="sm">
      <div>
        <Title order={3} size="h5">
          {isolated(name)}
        </Title>
        {children}
      </div>
      <Group gap="xs">{actions}</Group>
    </Group>
  )
}

function Line({ children }: { readonly children: ReactNode }) {
  return (
    <Text size="sm" c="dimmed">
      {children}
    </Text>
  )
}

function Time({ text, at }: { readonly text: MessageKey; readonly at: string }) {
  const { t, dateTime, relative } = useTranslation()
  return <time dateTime={at}>{t(text, { when: `${dateTime(at)} (${relative(at)})` })}</time>
}

/** How the user got the access, as far as it is known. */
function Through({ request }: { readonly request: AccessRequest | undefined }) {
  const { t } = useTranslation()
  if (request === undefined) return t('access.throughUnknown')
  return (
    <>
      {t('access.through')}{' '}
      <Anchor size="sm" renderRoot={(props) => <Link to="/requests/$id" params={{ id: request.id }} {...props} />}>
        {isolated(request.label)}
      </Anchor>
    </>
  )
}

interface AgainProps {
  readonly workflow: AccessWorkflow | undefined
  /** An open request for the same workflow. */
  readonly pending: string | undefined
  readonly text: 'access.extend' | 'access.again'
  readonly name: string
}

/** Leads to the item of the catalog, or to the open request for the same access. */
function Again({ workflow, pending, text, name }: AgainProps) {
  const { t } = useTranslation()
  if (pending !== undefined) {
    return (
      <Anchor size="sm" renderRoot={(props) => <Link to="/requests/$id" params={{ id: pending }} {...props} />}>
        {t('access.pending')}
      </Anchor>
    )
  }
  if (workflow === undefined) return null
  return (
    <Button
      size="xs"
      variant="default"
      aria-label={`${t(text)}: ${isolated(name)}`}
      renderRoot={(props) => <Link to="/request/item" search={{ name: workflow.name }} {...props} />}
    >
      {t(text)}
    </Button>
  )
}

/** An account as a whole has the name of its target. */
function useAccessName(): (access: Pick<TimedAccess, 'kind' | 'name' | 'target'>) => string {
  const { t } = useTranslation()
  return ({ kind, name, target }) => (kind === 'user' ? t('access.account', { target }) : name)
}

export function TimedRow({ access, onGiveBack }: { readonly access: TimedAccess; readonly onGiveBack: () => void }) {
  const { t } = useTranslation()
  const { target, kind, granted, expires, request, workflow, pending, mayGiveBack } = access
  const name = useAccessName()(access)
  return (
    <Row
      name={name}
      actions={
        <>
          <Again workflow={workflow} pending={pending} text="access.extend" name={name} />
          {mayGiveBack && (
            <Button
              size="xs"
              variant="default"
              aria-label={`${t('access.giveBack')}: ${isolated(name)}`}
              onClick={onGiveBack}
            >
              {t('access.giveBack')}
            </Button>
          )}
        </>
      }
    >
      <Text size="sm" fw={600}>
        <Time text="access.until" at={expires} />
      </Text>
      <Line>
        {kind === 'group' && `${t('access.in', { target })} · `}
        <Time text="access.since" at={granted} />
      </Line>
      <Line>
        <Through request={request} />
      </Line>
    </Row>
  )
}

export function GroupRow({ group: { name, since, request } }: { readonly group: GroupAccess }) {
  const { t } = useTranslation()
  return (
    <Row name={name}>
      <Line>{since === undefined ? t('access.sinceUnknown') : <Time text="access.since" at={since} />}</Line>
      {request !== undefined && (
        <Line>
          <Through request={request} />
        </Line>
      )}
    </Row>
  )
}

export function EndedRow({ access }: { readonly access: EndedAccess }) {
  const { t } = useTranslation()
  const { target, kind, ended, request, workflow, pending, removal } = access
  const name = useAccessName()(access)
  const look = removalLook(removal)
  return (
    <Row
      name={name}
      actions={
        <>
          <Status tone={look.tone} icon={look.icon} text={t(look.text)} />
          <Again workflow={workflow} pending={pending} text="access.again" name={name} />
        </>
      }
    >
      <Line>
        {kind === 'group' && `${t('access.in', { target })} · `}
        <Time text="access.endedAt" at={ended} />
      </Line>
      {request !== undefined && (
        <Line>
          <Through request={request} />
        </Line>
      )}
    </Row>
  )
}
