import { Button, Text, TextInput } from '@mantine/core'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { AccountLinkView, LinkedAccount } from '#features/portal/contract/console-reconciliations.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { consolePath } from '../../../api/console.ts'
import { linkAccount, unlinkAccount } from '../../../api/reconciliations.ts'
import { useConfig } from '../../../app/config.tsx'
import { type Translation, useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Icon } from '../../../components/icon.tsx'
import { PersonName } from '../../../components/person-names.tsx'
import { ReasonDialog } from '../../../components/reason-dialog.tsx'
import { ConsoleList } from '../console-list.tsx'
import { ConsolePage } from '../console-page.tsx'

const route = getRouteApi('/console/reconciliations/$name/links')

/** What was decided, by the names that the operator knows, with those that no one has checked. */
export const linkedText = (
  { source, target }: { readonly source: string; readonly target: string | undefined },
  { unknown }: LinkedAccount,
  t: Translation['t'],
): string =>
  [
    target === undefined ? t('links.storedNone', { source }) : t('links.stored', { source, target }),
    ...(unknown.length === 0 ? [] : [t('links.unknown', { names: unknown.join(', ') })]),
  ].join(' ')

/** The decisions which account a person has. */
export function LinksPage() {
  const { t, exactTime } = useTranslation()
  const { operator } = useConfig()
  const { name } = route.useParams()
  const [removing, setRemoving] = useState<AccountLinkView>()
  const [isAdding, setAdding] = useState(false)
  return (
    <ConsolePage
      title={t('links.titleOf', { name })}
      intro={t('links.intro')}
      actions={
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/console/reconciliations/$name" params={{ name }} {...props} />}
          leftSection={<Icon name="back" size={18} />}
        >
          {isolated(name)}
        </Button>
      }
    >
      <ConsoleList<AccountLinkView>
        label={t('links.title')}
        path={consolePath(consoleRoutes.listAccountLinks, { name })}
        name="links"
        filter={{}}
        empty={t('links.none')}
        columns={[
          {
            key: 'person',
            name: t('links.person'),
            width: 10,
            cell: (link) => <Named id={link.source} login={link.personLogin} />,
          },
          {
            key: 'account',
            name: t('links.account'),
            width: 10,
            cell: ({ target, accountLogin }) =>
              target === undefined ? t('links.noAccount') : <Named id={target} login={accountLogin} />,
          },
          {
            key: 'decided',
            name: t('links.decided'),
            width: 10,
            cell: ({ decided, decidedBy }) => (
              <>
                <PersonName login={decidedBy} />
                {`, ${exactTime(decided)}`}
              </>
            ),
          },
          { key: 'reason', name: t('dashboard.reason'), width: 12, cell: ({ reason = '' }) => isolated(reason) },
          ...(operator
            ? [
                {
                  key: 'remove',
                  name: t('links.change'),
                  width: 8,
                  cell: (link: AccountLinkView) => (
                    <Button
                      variant="default"
                      size="xs"
                      aria-label={t('links.removeOf', { source: link.personLogin ?? link.source })}
                      onClick={() => setRemoving(link)}
                    >
                      {t('links.remove')}
                    </Button>
                  ),
                },
              ]
            : []),
        ]}
      >
        {operator && (
          <Button leftSection={<Icon name="plus" size={18} />} onClick={() => setAdding(true)}>
            {t('links.add')}
          </Button>
        )}
      </ConsoleList>
      {isAdding && <AddDialog name={name} onClose={() => setAdding(false)} />}
      {removing !== undefined && (
        <ReasonDialog
          title={t('links.remove')}
          text={t('links.removeText', { source: removing.personLogin ?? removing.source })}
          isHarmful
          send={(reason) => unlinkAccount(name, removing.source, reason)}
          done={({ removed }) =>
            t(removed ? 'links.removed' : 'links.wasRemoved', { source: removing.personLogin ?? removing.source })
          }
          onClose={() => setRemoving(undefined)}
        />
      )}
    </ConsolePage>
  )
}

/** By login, with the id that is stored; by id alone where the system has no such user. */
function Named({ id, login }: { readonly id: string; readonly login: string | undefined }) {
  return (
    <>
      <Text size="sm">{isolated(login ?? id)}</Text>
      {login !== undefined && (
        <Text size="xs" c="dimmed">
          {isolated(id)}
        </Text>
      )}
    </>
  )
}

function AddDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const { t } = useTranslation()
  const [source, setSource] = useState('')
  const [target, setTarget] = useState('')
  const link = { source: source.trim(), target: target.trim() === '' ? undefined : target.trim() }
  return (
    <ReasonDialog
      title={t('links.add')}
      text={t('links.addText')}
      isFilled={source.trim() !== ''}
      fields={(isAsked) => (
        <>
          <TextInput
            label={t('links.person')}
            required
            data-autofocus
            maxLength={500}
            value={source}
            onChange={(event) => setSource(event.currentTarget.value)}
            error={isAsked && source.trim() === '' ? t('register.required') : undefined}
          />
          <TextInput
            label={t('links.accountOrNone')}
            maxLength={500}
            value={target}
            onChange={(event) => setTarget(event.currentTarget.value)}
          />
        </>
      )}
      send={(reason) => linkAccount(name, { ...link, reason })}
      done={(linked) => linkedText(link, linked, t)}
      onClose={onClose}
    />
  )
}
