import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { AccountFactorKind, AccountFactors, EnrolledFactor } from '#features/account/contract/account.ts'
import { factorsQuery, renewRecoveryCodes } from '../../api/account.ts'
import { useTranslation } from '../../app/i18n.tsx'
import type { MessageKey } from '../../app/messages.ts'
import { Answer } from '../../components/answer.tsx'
import { Icon, type IconName } from '../../components/icon.tsx'
import { useSay } from '../../components/notices.tsx'
import { Empty } from '../../components/states.tsx'
import { FactorCard } from './factor-card.tsx'
import { allowsPasskeys } from './make-passkey.ts'
import { PasskeyDialog } from './passkey-dialog.tsx'
import { RecoveryCodesDialog } from './recovery-codes-dialog.tsx'
import { useSayFailure, useStepUp } from './step-up.tsx'
import { TotpDialog } from './totp-dialog.tsx'

const additions: Readonly<Record<AccountFactorKind, { readonly label: MessageKey; readonly icon: IconName }>> = {
  totp: { label: 'security.addTotp', icon: 'phone' },
  passkey: { label: 'security.addPasskey', icon: 'key' },
}

/** The user's second factors. */
export function Factors() {
  const { t } = useTranslation()
  const factors = useQuery(factorsQuery)
  return (
    <Stack component="section" aria-label={t('security.factors')} gap="sm">
      <div>
        <Title order={2} size="h4">
          {t('security.factors')}
        </Title>
        <Text c="dimmed" size="sm">
          {t('security.factorsText')}
        </Text>
      </div>
      <Answer query={factors} rows={2}>
        {(known) => <FactorList known={known} />}
      </Answer>
    </Stack>
  )
}

function FactorList({ known: { factors, offers, recoveryCodes } }: { readonly known: AccountFactors }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const [adding, setAdding] = useState<AccountFactorKind>()
  const [codes, setCodes] = useState<readonly string[]>()
  const enrolled = ({ recoveryCodes: fresh }: EnrolledFactor): void => {
    setAdding(undefined)
    setCodes(fresh)
    say(t('security.added'))
    void client.invalidateQueries({ queryKey: factorsQuery.queryKey })
  }
  const close = (): void => setAdding(undefined)
  const usable = offers.filter((kind) => kind !== 'passkey' || allowsPasskeys(window.location.hostname))
  return (
    <>
      {factors.length === 0 && (
        <Empty icon="shield" title={t('security.noFactors')} text={t('security.noFactorsText')} />
      )}
      {factors.map((factor) => (
        <FactorCard key={factor.id} factor={factor} />
      ))}
      <Group>
        {usable.map((kind) => (
          <Button
            key={kind}
            variant="default"
            leftSection={<Icon name={additions[kind].icon} size={18} />}
            onClick={() => setAdding(kind)}
          >
            {t(additions[kind].label)}
          </Button>
        ))}
      </Group>
      {usable.length < offers.length && (
        <Text size="sm" c="dimmed">
          {t('security.passkeyHost')}
        </Text>
      )}
      {factors.length > 0 && <Recovery left={recoveryCodes} onCodes={setCodes} />}
      {adding === 'totp' && <TotpDialog onClose={close} onEnrolled={enrolled} />}
      {adding === 'passkey' && <PasskeyDialog onClose={close} onEnrolled={enrolled} />}
      {codes !== undefined && <RecoveryCodesDialog codes={codes} onClose={() => setCodes(undefined)} />}
    </>
  )
}

interface RecoveryProps {
  readonly left: number
  readonly onCodes: (codes: readonly string[]) => void
}

function Recovery({ left, onCodes }: RecoveryProps) {
  const { t, tn } = useTranslation()
  const client = useQueryClient()
  const guarded = useStepUp()
  const sayFailure = useSayFailure()
  const renew = useMutation({
    mutationFn: () => guarded(renewRecoveryCodes),
    onSuccess: ({ recoveryCodes }) => {
      onCodes(recoveryCodes)
      void client.invalidateQueries({ queryKey: factorsQuery.queryKey })
    },
    onError: sayFailure,
  })
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" gap="sm">
        <div>
          <Text fw={600}>{t('security.recovery')}</Text>
          <Text size="sm" c="dimmed">
            {tn('security.codesLeft', left)}
          </Text>
        </div>
        <Button variant="default" size="xs" loading={renew.isPending} onClick={() => renew.mutate()}>
          {t('security.newCodes')}
        </Button>
      </Group>
    </Paper>
  )
}
