from catena.core.config import checks as checks
from catena.tools.impurities import purity as purity
from catena.tools.linting import check_keys as check_keys
from catena.tools.linting import lint as lint
from catena.tools.progress_bars import progress as progress
from catena.tools.stepping import replay as replay
