import { NativeSelect } from '@mantine/core'
import { useState } from 'react'
import type { AccountNameView, PlanRowView } from '#features/portal/contract/console-reconciliations.ts'
import { linkAccount } from '../../../api/reconciliations.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { ReasonDialog } from '../../../components/reason-dialog.tsx'
import { linkedText } from './links-page.tsx'

interface DecideDialogProps {
  readonly reconciliation: string
  readonly row: PlanRowView
  readonly onClose: () => void
}

const keyOf = ({ id, login }: AccountNameView): string => id ?? login

/** By login; the id follows where two have the same login. */
export const candidateName = ({ id, login }: AccountNameView, all: readonly AccountNameView[]): string =>
  id === undefined || all.filter((one) => one.login === login).length < 2
    ? isolated(login)
    : `${isolated(login)} (${isolated(id)})`

/** Distinct from every name, which has at least one character. */
const none = ''

/** Decides which account the person of an ambiguous row has, or which person the account belongs to. */
export function DecideDialog({ reconciliation, row, onClose }: DecideDialogProps) {
  const { t } = useTranslation()
  const { source, target, candidates = [] } = row
  const [chosen, setChosen] = useState<string>()
  // The candidates of a person are accounts, and those of an account are people.
  const given = source ?? target
  if (given === undefined) return null
  const isPerson = source !== undefined
  const choices = [
    ...candidates.map((one) => ({ value: `=${keyOf(one)}`, label: candidateName(one, candidates) })),
    ...(isPerson ? [{ value: '-', label: t('links.noAccount') }] : []),
  ]
  const picked = candidates.find((one) => `=${keyOf(one)}` === chosen)
  const [person, account] = isPerson ? [given, picked] : [picked, given]
  return (
    <ReasonDialog
      title={t('links.decide')}
      text={t(isPerson ? 'links.whichAccount' : 'links.whichPerson', { name: given.login })}
      isFilled={chosen !== undefined && chosen !== none}
      fields={(isAsked) => (
        <NativeSelect
          label={t(isPerson ? 'links.account' : 'links.person')}
          required
          data-autofocus
          value={chosen ?? none}
          onChange={(event) => setChosen(event.currentTarget.value)}
          data={[{ value: none, label: t('links.choose') }, ...choices]}
          error={isAsked && (chosen ?? none) === none ? t('register.required') : undefined}
        />
      )}
      send={(reason) =>
        linkAccount(reconciliation, {
          source: person === undefined ? '' : keyOf(person),
          target: account && keyOf(account),
          reason,
        })
      }
      done={(linked) =>
        `${linkedText({ source: person?.login ?? '', target: account?.login }, linked, t)} ${t('links.nextPlan')}`
      }
      onClose={onClose}
    />
  )
}
