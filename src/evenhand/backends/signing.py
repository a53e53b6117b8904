"""Requests signed with the credentials that the provider's own package finds: environment, profile, role, sign-on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from evenhand.errors import AccessError, InputError, MissingExtraError

_SERVICE = "bedrock"
_REMEDY = "set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"


class Signer:
    """Signs requests to one region; session credentials are renewed when they are about to end.

    Args:
        region: The region, as in "us-east-1".

    Raises:
        MissingExtraError: botocore is not installed.
        InputError: no credentials are found.
    """

    def __init__(self, region: str) -> None:
        try:
            from botocore.exceptions import BotoCoreError
            from botocore.session import Session
        except ImportError:
            raise MissingExtraError("botocore", "bedrock") from None
        self._region = region
        log = logging.getLogger("botocore")
        if log.level == logging.NOTSET:  # its details show session tokens
            log.setLevel(logging.INFO)
        try:
            self._credentials: Any = Session().get_credentials()
        except BotoCoreError as error:
            raise InputError(f"the AWS credentials can't be read: {error}", hint=_REMEDY) from None
        if self._credentials is None:
            raise InputError("no AWS credentials", hint=_REMEDY)
        self.secrets: tuple[str, ...] = ()
        self._freeze()

    def sign(self, url: str, body: bytes, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The headers, with those of the signature.

        Raises:
            AccessError: the credentials have ended and can't be renewed.
        """
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = AWSRequest(method="POST", url=url, data=body, headers=dict(headers))
        SigV4Auth(self._freeze(), _SERVICE, self._region).add_auth(request)
        return dict(request.headers.items())

    def _freeze(self) -> Any:
        """The credentials of this moment."""
        from botocore.exceptions import BotoCoreError

        try:
            frozen = self._credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise AccessError(f"the AWS credentials can't be renewed: {error}", hint=_REMEDY) from None
        self.secrets = tuple(part for part in (frozen.secret_key, frozen.token, frozen.access_key) if part)
        return frozen
